"""Timestamps of objects: UTC with whole seconds, and seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1 << 10)
def parse_time(text: str | None) -> float | None:
    """The seconds since 1970 of a timestamp; None if it is absent or unreadable."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=1 << 8)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_time(seconds: float) -> str:
    """The timestamp of a time in seconds since 1970."""
    return _format_second(int(seconds))
