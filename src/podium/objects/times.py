"""Durations and timestamps as the API writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from podium.objects.names import quoted

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_LONGEST: Final = 1 << 63
_PART = re.compile(r"(?P<whole>[0-9]*)(?P<point>\.?)(?P<rest>[0-9]*)(?P<unit>[^.0-9]*)")


def parse(text: str) -> int:
    """The nanoseconds that *text* stands for; a ValueError in Go's words if it stands for none."""
    invalid = ValueError(f"time: invalid duration {quoted(text)}")
    sign, left = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if left == "0":
        return 0
    total = 0
    while True:
        part = _PART.match(left)
        if part is None or not (part["whole"] or part["rest"]):
            raise invalid
        if not part["unit"]:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if part["unit"] not in _UNITS:
            shown = f"{quoted(part['unit'])} in duration {quoted(text)}"
            raise ValueError(f"time: unknown unit {shown}")
        unit = _UNITS[part["unit"]]
        # Digits beyond what 63 bits hold do not count.
        rest = part["rest"][:18]
        total += int(part["whole"] or 0) * unit
        total += int(rest or 0) * unit // int("1" + "0" * len(rest))
        if total > _LONGEST - (sign != "-"):
            raise invalid
        left = left[part.end() :]
        if not left:
            return -total if sign == "-" else total


def text_of(nanoseconds: int) -> str:
    """The time as Go's `Duration.String` writes it."""
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if not left:
        return "0s"
    if left < SECOND:
        name = "ns" if left < 1_000 else "µs" if left < 1_000_000 else "ms"
        return f"{sign}{_decimal(left, _UNITS[name])}{name}"
    minutes, left = divmod(left, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    prefix = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{prefix}{_decimal(left, SECOND)}s"


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if rest else str(whole)


#: What an absent time is: before every other, as Go's zero time.
NEVER: Final = -math.inf


@lru_cache(maxsize=1 << 12)
def seconds(text: str | None) -> float:
    """Read an RFC 3339 time ("2024-05-01T10:00:00Z"); an absent or empty one is `NEVER`.

    Raises `ValueError` for any other text that is not a time.
    """
    if not text:
        return NEVER
    read = datetime.fromisoformat(text)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def shown_time(seconds: float) -> str:
    """A time to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"
