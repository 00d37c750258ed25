"""Lines for terminals: tables with aligned columns, and lines in a style."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

#: A line, and its style on a terminal as arguments of `click.style`.
Line = tuple[str, dict[str, Any]]

BOLD: Final[dict[str, Any]] = {"bold": True}
YELLOW: Final[dict[str, Any]] = {"fg": "yellow"}
PLAIN: Final[dict[str, Any]] = {}
_GUTTER: Final = "   "
#: No column becomes narrower than this.
_NARROWEST: Final = 6
_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def within(columns: int | None) -> Iterator[None]:
    """Limit the width of tables; None is no limit. Cells that are too wide take several lines."""
    token = _most.set(columns)
    try:
        yield
    finally:
        _most.reset(token)


def styled(text: str = "", style: str = "") -> Line:
    """A line in a style: a colour, `bold`, `dim`, or `bold` and a colour."""
    shown: dict[str, Any] = {}
    for word in style.split():
        shown |= {word: True} if word in {"bold", "dim"} else {"fg": word}
    return printable(text), shown


class TextTable:
    """A table whose rows have styles. A header may have several lines.

    Columns of *right* are aligned to the right. Cells of *whole* columns stay on one line; None
    stands for all columns.
    """

    def __init__(
        self, *header: str, right: Container[str] = (), whole: Container[str] | None = ()
    ) -> None:
        self._header = header
        self._right = {at for at, name in enumerate(header) if name in right}
        self._whole = {at for at, name in enumerate(header) if whole is None or name in whole}
        self._rows: list[tuple[Sequence[str], str]] = []

    def add(self, *cells: object, style: str = "") -> None:
        """Add a row. Cells that are left out are empty."""
        missing = [""] * (len(self._header) - len(cells))
        self._rows.append(([*map(str, cells), *missing], style))

    def lines(self) -> Iterator[Line]:
        """The lines of the table."""
        heads = [name.split("\n") for name in self._header] if any(self._header) else []
        height = max(map(len, heads), default=0)
        rows = [*zip(*([""] * (height - len(head)) + head for head in heads), strict=True)]
        cells = [*rows, *(row for row, _ in self._rows)]
        styles = [*("dim" for _ in rows), *(style for _, style in self._rows)]
        for text, style in zip(aligned(cells, self._right, self._whole), styles, strict=True):
            yield styled(text, style)


def aligned(
    table: Iterable[Sequence[str]], right: Container[int] = (), whole: Container[int] = ()
) -> list[str]:
    """The rows of a table with aligned columns; those of *right* are flush right.

    Within a limit (`within`) wide cells take several lines, except in the columns of *whole*.
    """
    cells = [[printable(cell) for cell in row] for row in table]
    natural = [max(map(len, column)) for column in zip(*cells, strict=True)]
    pads = [str.rjust if place in right else str.ljust for place in range(len(natural))]
    widths, between = _fitted(natural, whole)
    if widths == natural:
        return [_joined(between, pads, row, widths) for row in cells]
    return [
        "\n".join(_joined(between, pads, line, widths) for line in _lines_of(row, widths))
        for row in cells
    ]


def _fitted(natural: Sequence[int], whole: Container[int]) -> tuple[list[int], str]:
    """The widths of columns that fit together, and what is between them.

    The widest columns become narrower first; where that is not enough, one blank is between them.
    """
    most, found = _most.get(), list(natural)
    if most is None:
        return found, _GUTTER
    least = [
        width if place in whole else min(width, _NARROWEST) for place, width in enumerate(natural)
    ]
    for between in (_GUTTER, " "):
        room = most - len(between) * (len(found) - 1)
        if room >= sum(least):
            break
    while sum(found) > room and found != least:
        spare = [width if width > least[at] else 0 for at, width in enumerate(found)]
        found[spare.index(max(spare))] -= 1
    return found, between


def _joined(
    between: str, pads: Sequence[Callable[..., str]], row: Sequence[str], widths: Sequence[int]
) -> str:
    return between.join([pad(*each) for pad, *each in zip(pads, row, widths, strict=True)]).rstrip()


def _lines_of(row: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """The lines of one row whose columns have these widths."""
    parts = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    return zip_longest(*parts, fillvalue="")


def _folded(cell: str, width: int) -> list[str]:
    """The lines of a cell of this width. Names are broken where no blank is left."""
    if len(cell) <= width:
        return [cell]
    indent = cell[: len(cell) - len(cell.lstrip(" "))]
    return textwrap.wrap(cell, width, break_on_hyphens=False, subsequent_indent=indent) or [""]


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
