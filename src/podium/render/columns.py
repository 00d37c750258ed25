"""Tables of text: cells in aligned columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GUTTER = "   "


def aligned(rows: Sequence[tuple[str, ...]], left: int) -> Iterator[str]:
    """The rows as aligned columns: the first *left* columns flush left, the others flush right."""
    shown = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        padded = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield _GUTTER.join(padded).rstrip()
