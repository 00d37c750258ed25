"""What somebody may have meant by a name that nobody knows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 100
_ALIKE = 0.75


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like *name*, however it is capitalised; None if none is like it."""
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(name[:_LONGEST].lower(), by_lower, n=1, cutoff=_ALIKE)
    return by_lower[found[0]] if found else None


def meant(name: str, known: Iterable[str]) -> str:
    """The question `did you mean X?`, or nothing."""
    found = closest(name, known)
    return f"did you mean {found}?" if found else ""
