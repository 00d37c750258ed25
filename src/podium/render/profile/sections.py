"""Sections of a report: a title above a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.columns import TextTable, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.render.columns import Line


def section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """A section without the columns that are empty in all rows; nothing if there are no rows."""
    if not rows:
        return
    yield styled()
    yield styled(title, "bold")
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows)]
    table = TextTable(*(columns[at] if columns else "" for at in used))
    for row in rows:
        table.add(*(row[at] for at in used))
    yield from table.lines()


def extenders_section(extenders: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """The section of the extenders, which both generations have."""
    yield from section(
        "Extenders",
        ("URL", "VERBS", "WEIGHT"),
        [(e["urlPrefix"], ", ".join(e["verbs"]), str(e["weight"])) for e in extenders],
    )


def option_text(value: Any, *, unset: str) -> str:
    """The value of an option, *unset* if it is None."""
    if isinstance(value, bool):
        return str(value).lower()
    return unset if value is None else str(value)
