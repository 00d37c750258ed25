"""Tables and lists of names for the results of planning."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from podium.render.columns import aligned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.render.columns import Line

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


def as_html(lines: Iterable[Line]) -> str:
    """Lines of a report as HTML that keeps their columns."""
    return f"<pre>{escape(chr(10).join(line for line, _ in lines))}</pre>"
