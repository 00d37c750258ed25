"""Text that is safe to print on a terminal, whatever the names of objects contain."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters escaped, newlines and tabs excepted."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def counted(count: int, noun: str) -> str:
    """A number with a noun: `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
