"""Suggestions for misspelt names, such as `did you mean NodeResourcesFit?`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Comparing takes time that grows with the square of a name's length.
_MAX_LENGTH = 100
_MIN_SIMILARITY = 0.75


def most_similar(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to *name*, ignoring case; None if none is similar."""
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(name[:_MAX_LENGTH].lower(), by_lower, n=1, cutoff=_MIN_SIMILARITY)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question `did you mean X?`, empty if no known name is similar."""
    found = most_similar(name, known)
    return f"did you mean {found}?" if found else ""
