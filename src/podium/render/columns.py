"""Tables of text: cells in aligned columns, as lines with styles, at most as wide as a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

#: No column becomes narrower than this.
_NARROWEST: Final = 6
_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def within(columns: int | None) -> Iterator[None]:
    """Let tables be at most so wide; None is no limit."""
    token = _most.set(columns)
    try:
        yield
    finally:
        _most.reset(token)


def fitted(widths: Sequence[int], gutter: str) -> tuple[list[int], str]:
    """The widths of columns that fit together, and what is between them.

    The widest columns become narrower first; where that is not enough, one blank is between them.
    """
    most, found = _most.get(), list(widths)
    if most is None:
        return found, gutter
    for between in (gutter, " "):
        room = most - len(between) * (len(found) - 1)
        if room >= _NARROWEST * len(found):
            break
    while sum(found) > room and max(found) > _NARROWEST:
        found[found.index(max(found))] -= 1
    return found, between


def folded(cell: str, width: int) -> list[str]:
    """The lines of a cell that is at most so wide; names are broken where they have to be."""
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_on_hyphens=False) or [""]


_GUTTER: Final = "   "


def aligned(table: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """The lines of a table with aligned columns; those of *right* are flush right.

    Where tables have a limit (`podium.render.columns`), wide cells go over several lines.
    A run may place a hundred thousand pods, for which a general table printer would take longer
    than the decisions.
    """
    cells = [[printable(cell) for cell in row] for row in table]
    natural = [max(map(len, column)) for column in zip(*cells, strict=True)]
    pads = [str.rjust if place in right else str.ljust for place in range(len(natural))]
    widths, between = fitted(natural, _GUTTER)
    if widths == natural:
        return [_joined(between, pads, row, widths) for row in cells]
    return [
        "\n".join(_joined(between, pads, line, widths) for line in _lines_of(row, widths))
        for row in cells
    ]


def _joined(
    between: str, pads: Sequence[Callable[..., str]], row: Sequence[str], widths: Sequence[int]
) -> str:
    return between.join([pad(*each) for pad, *each in zip(pads, row, widths, strict=True)]).rstrip()


def _lines_of(row: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """The lines of one row whose columns are so wide."""
    parts = [folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    return zip_longest(*parts, fillvalue="")


#: A line and its style on a terminal.
Line = tuple[str, dict[str, Any]]

BOLD: Final[dict[str, Any]] = {"bold": True}
YELLOW: Final[dict[str, Any]] = {"fg": "yellow"}
PLAIN: Final[dict[str, Any]] = {}
_NAMES: Final = 3


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], style: dict[str, Any] | None = None
) -> Iterator[Line]:
    """The lines of a table after an empty line; nothing if it has no rows.

    Columns whose header begins with a blank hold numbers and are aligned to the right.
    """
    found = list(rows)
    if not found:
        return
    right = {place for place, name in enumerate(header) if name.startswith(" ")}
    first, *rest = aligned([[name.strip() for name in header], *found], right)
    yield "", PLAIN
    yield first, BOLD
    for line in rest:
        yield line, style or PLAIN


def some(names: Sequence[str], most: int = _NAMES) -> str:
    """The first names, and how many more there are."""
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed
