"""YAML text cut into pieces that can be parsed apart, and their documents put together again.

A stream is cut between documents. A document that is one long list, as `kubectl get -o yaml` prints
it, is cut between its items as well: a frame without items, and pieces with items only. Where a cut
would be wrong, because what looks like the border of an item is within a text, a piece cannot be
parsed, or the frame has items after all. Then the text has to be parsed as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from podium.objects.kinds.meta import Plain
from podium.objects.reading.yaml_text import YamlDocument

_DOCUMENT = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
#: Line breaks of YAML that are not counted here.
_OTHER_BREAKS = "\x85\u2028\u2029"
_ITEMS = re.compile(r"^items:[ \t]*\r?\n(?P<indent> *)(?=- )", re.MULTILINE)
_ITEMS_KEY = re.compile(r"""^["']?items["']?\s*:""", re.MULTILINE)
#: What may be an anchor: aliases may stand for it anywhere in the document.
_ANCHOR = re.compile(r"&(?<![^\s\[{,]&)[\w-]")
_ITEMS_LINE = "items:\n"


class Piece(NamedTuple):
    """A part of a stream."""

    text: str
    #: How many lines come before it.
    line: int
    #: Whether it has items of the list that is the last document before it, and nothing else.
    only_items: bool = False


def cut(text: str, size: int) -> Iterator[Piece]:
    """Pieces of about *size* characters, in order; larger ones where a text cannot be cut."""
    if len(text) <= size or _has_directives(text) or _has_other_breaks(text):
        yield Piece(text, 0)
        return
    line = 0
    for begin, end in _spans(text, size):
        part = text[begin:end]
        if len(part) > 2 * size:
            yield from _cut_list(part, line, size)
        else:
            yield Piece(part, line)
        line += part.count("\n")


def _has_directives(text: str) -> bool:
    """Whether some line may be a directive, which belongs to the document after it."""
    return text.startswith("%") or "\n%" in text


def _has_other_breaks(text: str) -> bool:
    """Whether a line may end otherwise than with a line feed."""
    alone = text.count("\r") != text.count("\r\n")
    return alone or any(each in text for each in _OTHER_BREAKS)


def _spans(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Where pieces of whole documents begin and end; a long document is one by itself."""
    borders = [0, *(found.start() for found in _DOCUMENT.finditer(text)), len(text)]
    start = 0
    for begin, end in pairwise(borders):
        if end - start > 2 * size and begin > start:
            yield start, begin
            start = begin
        if end - start >= size or end == len(text):
            yield start, end
            start = end


def _cut_list(text: str, line: int, size: int) -> Iterator[Piece]:
    """A document in pieces of items, if it is a list; otherwise as it is."""
    items = _ITEMS.search(text)
    if items is None or len(_ITEMS_KEY.findall(text)) > 1 or _ANCHOR.search(text):
        yield Piece(text, line)
        return
    indent = items["indent"]
    begin = items.start("indent")
    less = f" {{0,{len(indent) - 1}}}[^ \r\n#]" if indent else "[^ \r\n#-]"
    after = re.compile(f"^{less}", re.MULTILINE).search(text, begin)
    end = len(text) if after is None else after.start()
    yield Piece(text[:begin] + text[end:], line)
    border = re.compile(f"^{indent}- ", re.MULTILINE)
    while begin < end:
        found = border.search(text, begin + size, end)
        stop = end if found is None else found.start()
        yield Piece(_ITEMS_LINE + text[begin:stop], line, only_items=True)
        begin = stop


def together(
    pieces: Sequence[Piece], parsed: Sequence[list[YamlDocument]]
) -> list[YamlDocument] | None:
    """The documents of a whole text, from those of its pieces; None if a cut was wrong."""
    found: list[YamlDocument] = []
    items: list[Plain] | None = None
    for piece, documents in zip(pieces, parsed, strict=True):
        if not piece.only_items:
            found += [YamlDocument(each.line + piece.line, each.value) for each in documents]
            items = None
            continue
        part = documents[0].value if len(documents) == 1 else None
        more = part.pop("items", None) if isinstance(part, dict) else None
        if part or not isinstance(more, list):
            return None
        if items is None:
            frame = found[-1].value if found else None
            if not isinstance(frame, dict) or frame.get("items", more) is not None:
                return None
            items = frame["items"] = []
        items += more
    return found
