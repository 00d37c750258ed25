"""Timestamps and durations in expressions, in nanoseconds.

Upstream: google/cel-go common/types (timestamp.go, duration.go).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from podium.cel.errors import CelError
from podium.cel.values import Opaque

SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|ms|s|m|h)")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST: Final = -(2**63)
#: More digits do not fit into 64 bits, or are less than a nanosecond.
_MOST_DIGITS: Final = 19
_NOT_CONVERTED: Final = "type conversion error from 'string' to '{}'"
_MOST: Final = 2**63 - 1
#: From the year 1 to the year 9999.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


@dataclass(frozen=True, slots=True, order=True)
class Duration(Opaque):
    """A length of time."""

    cel_name: ClassVar = "google.protobuf.Duration"
    ordered: ClassVar = True

    nanoseconds: int

    @classmethod
    def of(cls, nanoseconds: int) -> Duration:
        """A duration that fits into 64 bits."""
        if not _LEAST <= nanoseconds <= _MOST:
            raise CelError("integer overflow")
        return cls(nanoseconds)

    @classmethod
    def parse(cls, text: str) -> Duration:
        """A duration as Go writes it: `1h30m`, `-1.5s`."""
        sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
        total, at = 0, 0
        if rest != "0":
            while at < len(rest):
                found = _PART.match(rest, at)
                if found is None or not (found[1] or found[2]):
                    break
                unit = _UNITS[found[3]]
                whole, fraction = (found[1] or "0").lstrip("0"), (found[2] or "")[:_MOST_DIGITS]
                if len(whole) > _MOST_DIGITS:
                    break
                total += int(whole or 0) * unit
                total += int(fraction or 0) * unit // 10 ** len(fraction)
                at = found.end()
        total *= sign
        if not rest or (rest != "0" and at < len(rest)) or not _LEAST <= total <= _MOST:
            raise CelError(_NOT_CONVERTED.format(cls.cel_name))
        return cls(total)

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanoseconds), SECOND)
        fraction = f".{rest:09d}".rstrip("0").rstrip(".")
        return f"{'-' if self.nanoseconds < 0 else ''}{whole}{fraction}s"

    def count(self, unit: int) -> int:
        """How many whole units the duration has, towards zero."""
        whole = abs(self.nanoseconds) // unit
        return -whole if self.nanoseconds < 0 else whole


@dataclass(frozen=True, slots=True, order=True)
class Timestamp(Opaque):
    """A moment."""

    cel_name: ClassVar = "google.protobuf.Timestamp"
    ordered: ClassVar = True

    nanoseconds: int

    @classmethod
    def of(cls, nanoseconds: int) -> Timestamp:
        """A moment in the years 1 to 9999."""
        if not _FIRST_SECOND <= nanoseconds // SECOND <= _LAST_SECOND:
            raise CelError("timestamp overflow")
        return cls(nanoseconds)

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """A moment as RFC 3339 writes it."""
        found = _TIME.fullmatch(text)
        moment = None
        if found is not None:
            zone = "+00:00" if found[4] == "Z" else found[4]
            with suppress(ValueError):
                moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
        if found is None or moment is None:
            raise CelError(_NOT_CONVERTED.format(cls.cel_name))
        seconds = (moment - _EPOCH) // timedelta(seconds=1)
        return cls.of(seconds * SECOND + int((found[3] or "")[:9].ljust(9, "0")))

    def __str__(self) -> str:
        seconds, rest = divmod(self.nanoseconds, SECOND)
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return f"{text}{f'.{rest:09d}'.rstrip('0').rstrip('.')}Z"

    def at(self, zone: str = "") -> datetime:
        """The moment in a time zone: UTC, or an offset such as `+02:00`."""
        seconds = self.nanoseconds // SECOND
        if zone not in {"", "UTC"}:
            seconds += _offset(zone)
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            raise CelError("timestamp overflow")
        return _EPOCH + timedelta(seconds=seconds)

    @property
    def milliseconds(self) -> int:
        """The milliseconds of its second."""
        return self.nanoseconds % SECOND // 10**6


def _offset(zone: str) -> int:
    """The seconds that a time zone is ahead of UTC."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        raise CelError(f"unknown time zone {zone}")
    for part in (hours, minutes):
        if not _INTEGER.fullmatch(part):
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
        if len(part) > _MOST_DIGITS:
            raise CelError(f'strconv.Atoi: parsing "{part}": value out of range')
    sign = -1 if zone.startswith("-") else 1
    return (int(hours) * 60 + sign * int(minutes)) * 60
