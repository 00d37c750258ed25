"""How wide tables may be: cells of tables that are wider go over several lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

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
