"""YAML in pieces: parsed apart and put together, the documents are those of the whole text."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podium.errors import InputError
from podium.objects.reading.yaml_text import YamlDocument, cut, documents, together


def in_pieces(text: str, size: int) -> list[YamlDocument] | None:
    """The documents put together from pieces; None if the text has to be parsed as a whole."""
    pieces = list(cut(text, size))
    try:
        return together(pieces, [list(documents(piece.text)) for piece in pieces])
    except InputError:
        return None


STREAM = """# first
kind: Pod
metadata: {name: a}
---
kind: Pod
metadata:
  name: b
---

---
# only a comment
--- # more
kind: Pod
metadata: {name: "c
  d"}
...
---
kind: Pod
data: |
  ---
  text
"""

LIST = """apiVersion: v1
items:
- kind: Pod
  metadata:
    name: a
    list:
    - x
- kind: Pod
  text: |
    - kind: no item

    items:
# between
- kind: Pod
  metadata: {name: c}
kind: List
metadata:
  resourceVersion: ''
"""
INDENTED = "kind: List\nitems:\n  - kind: Pod\n    name: a\n  - kind: Pod\n    name: b\n"


@pytest.mark.parametrize("size", [1, 5, 20, 60, 10_000])
@pytest.mark.parametrize(
    "text",
    [STREAM, LIST, INDENTED, f"{STREAM}---\n{LIST}---\n{INDENTED}", STREAM.replace("\n", "\r\n")],
    ids=["documents", "a list", "an indented list", "both", "line breaks of Windows"],
)
def test_documents_and_their_lines_are_the_same(text: str, size: int) -> None:
    assert in_pieces(text, size) == list(documents(text))


def test_documents_and_lists_are_cut() -> None:
    assert len(list(cut(STREAM, 20))) > 3
    assert sum(piece.only_items for piece in cut(LIST, 20)) == 3
    assert sum(piece.only_items for piece in cut(INDENTED, 10)) == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("%YAML 1.1\n---\na: 1\n---\nb: 2\n", id="directives"),
        pytest.param("a: 1\r---\rb: 2\n---\nc: 3\n", id="line breaks of old systems"),
        pytest.param("items:\n- &a {x: 1}\n- *a\nkind: List\n", id="anchors"),
        pytest.param("items:\n- a\n- b\nkind: List\nitems:\n- c\n", id="items twice"),
    ],
)
def test_what_pieces_would_change_is_not_cut(text: str) -> None:
    assert [piece.text for piece in cut(text, 1) if piece.only_items] == []
    assert in_pieces(text, 1) == list(documents(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('a: "x\n  y\n---\nb: 1"\n', id="a border of documents within a text"),
        pytest.param('kind: List\nitems:\n- "a\n- b"\n- c\n', id="a border of items within a text"),
        pytest.param("kind: List\nitems:\n- a\n- [b,\n- c]\n", id="a list in brackets"),
        pytest.param('a: "x\nitems:\n- y\n- z"\nkind: List\n', id="a text with items"),
        pytest.param("kind: List\nitems:\n- a\n- b: [\nmore: 1\n", id="a mistake"),
    ],
)
def test_a_wrong_cut_is_noticed(text: str) -> None:
    try:
        whole = list(documents(text))
    except InputError:
        whole = None

    assert in_pieces(text, 1) in (None, whole)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.text("ab-:#&*'\"\n %items{[", max_size=12)
    | st.sampled_from(["---", "- a", "items:", "items:\n- x", "a\n---\nb", "&a", "*a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "items", "- b", "kind"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(VALUES | st.fixed_dictionaries({"kind": st.just("List"), "items": st.lists(VALUES)})),
    st.integers(1, 80),
    st.sampled_from([2, 4]),
    st.sampled_from([None, "'", '"', "|"]),
)
@example([{"kind": "List", "items": [{"a": "- b"}, {"a": "items:\n- x"}]}], 1, 2, "|")
def test_written_values_are_read_from_pieces(
    values: list[object], size: int, indent: int, style: str | None
) -> None:
    text = yaml.safe_dump_all(values, indent=indent, default_style=style, explicit_start=True)

    assert in_pieces(text, size) in (None, list(documents(text)))
