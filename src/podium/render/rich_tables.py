"""Tables for terminals, whose rows may have a style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Container


def rich_table(*columns: str, right: Container[str] = (), whole_first: bool = False) -> Table:
    """A table without rows; with *whole_first*, its first column is not broken over lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for place, column in enumerate(columns):
        table.add_column(
            printable(column),
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=whole_first and place == 0,
        )
    return table


def add_row(table: Table, *cells: object, style: str = "") -> None:
    """Add a row to the table."""
    table.add_row(*(Text(printable(str(cell)), style=style) for cell in cells))
