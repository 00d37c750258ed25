"""Tables of text: cells in aligned columns."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from podium.render.plain import printable
from podium.render.width import fitted, folded

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

_GUTTER: Final = "   "


def aligned(table: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """The lines of a table with aligned columns; those of *right* are flush right.

    Where tables have a limit (`podium.render.width`), wide cells go over several lines.
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
