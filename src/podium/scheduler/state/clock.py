"""The clocks of a running scheduler, passed to all its parts so that a test can replace them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


class SteadyClock:
    """Seconds since 1970 that never jump: the wall clock at the start, then a monotonic one.

    Backoff and deadlines use it: setting the wall clock of the machine neither ends all of them at
    once nor prolongs them.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        """The time now."""
        return self._offset + self._steady()


@dataclass(frozen=True, slots=True)
class Clocks:
    """What a scheduler knows of time.

    `wall` is the time that is written into objects, `steady` the one that backoff and deadlines are
    measured by, `timer` measures how long something took, and `sleep` waits.
    """

    wall: Callable[[], float]
    steady: Callable[[], float]
    timer: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


def real_clocks() -> Clocks:
    """The clocks of this machine."""
    return Clocks(time.time, SteadyClock(), time.perf_counter, asyncio.sleep)


def written(seconds: float) -> str:
    """A time in the form of Kubernetes objects, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
