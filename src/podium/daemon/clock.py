"""A clock that never jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class SteadyClock:
    """Seconds since 1970 as the wall clock had them at the start, and steadily on from there.

    Rests and deadlines go by it: somebody who sets the wall clock neither wakes all pods at once
    nor puts them to sleep for a year.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        """The time now."""
        return self._offset + self._steady()


def written(seconds: float) -> str:
    """A time as Kubernetes objects write it, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
