"""Sections of a report: a title above a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from podium.render.rich_tables import add_row, rich_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType


def section(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[RenderableType]:
    """A section without the columns that are empty in all rows; nothing if there are no rows."""
    if not rows:
        return
    yield Text()
    yield Text(title, style="bold")
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows)]
    table = rich_table(*(columns[at] if columns else "" for at in used))
    table.show_header = bool(columns)
    for row in rows:
        add_row(table, *(row[at] for at in used))
    yield table


def extenders_section(extenders: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
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
