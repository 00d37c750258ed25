"""Tables within a width, and names of nodes without what they have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.render.columns import TextTable, aligned, within
from podium.render.plain import common_suffix

ROWS = [
    ("POD", "NODE", "REASON"),
    ("default/web-5d4f8c7b6-w4m9t", "<none>", "0/3 nodes are available: 3 Insufficient cpu."),
]


def lines(columns: int | None) -> list[str]:
    with within(columns):
        return "\n".join(aligned(ROWS)).splitlines()


def test_without_a_limit_a_row_is_a_line() -> None:
    assert len(lines(None)) == 2
    assert lines(200) == lines(None)


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_wide_cells_go_over_several_lines(columns: int) -> None:
    found = lines(columns)

    assert max(map(len, found)) <= columns
    assert len(found) > 2
    words = " ".join(found).split()
    assert {"Insufficient", "cpu.", "<none>"} <= set(words)


@given(
    st.lists(st.tuples(st.text("ab /-", max_size=60), st.text("xy.", max_size=60)), min_size=1),
    st.integers(24, 120),
)
def test_no_letter_is_lost(rows: list[tuple[str, str]], columns: int) -> None:
    with within(columns):
        found = "".join(aligned(rows))

    def letters(text: str) -> list[str]:
        return sorted(each for each in text if not each.isspace())

    assert letters(found) == letters("".join(a + b for a, b in rows))


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        (["a.eu.internal", "b.eu.internal"], ".eu.internal"),
        (["a.eu.internal", "b.us.internal"], ".internal"),
        (["xa.eu.internal", "ya.eu.internal"], ".eu.internal"),
        (["a.eu.internal"], ""),
        (["a", "b.eu"], ""),
        (["n1", "n2"], ""),
        ([], ""),
    ],
)
def test_what_names_have_in_common(names: list[str], suffix: str) -> None:
    assert common_suffix(names) == suffix
    assert common_suffix(names, shortest=10) == (suffix if len(suffix) >= 10 else "")


def test_a_table_has_styles_whole_columns_and_headers_of_several_lines() -> None:
    table = TextTable("NODE", "Image\nLocality", "WHICH", right=["Image\nLocality"], whole=["NODE"])
    table.add("a-long-name-of-a-node", 13, "one two three four", style="bold green")
    table.add("and 3 more", style="dim")

    with within(45):
        found = list(table.lines())

    dim, bold_green = {"dim": True}, {"bold": True, "fg": "green"}
    assert found == [
        ("                           Image", dim),
        ("NODE                    Locality   WHICH", dim),
        (f"a-long-name-of-a-node         13   one two\n{' ' * 35}three four", bold_green),
        ("and 3 more", dim),
    ]
