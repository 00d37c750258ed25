"""The clock of all controllers: the only place where they read the time or wait for it.

Controllers never sleep. A key that has to be synced later waits in the work queue, and the manager
waits for the queue through its clock. A clock whose time is moved by hand therefore drives every
controller, and the same writes happen in the same order each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol


class Clock(Protocol):
    """Time as controllers see it."""

    def now(self) -> float:
        """Seconds since 1970, as written into objects."""

    def stopwatch(self) -> float:
        """Seconds since some fixed moment, for measuring how long a sync takes."""

    async def wait(self, woken: asyncio.Event, until: float | None) -> None:
        """Let other tasks run until *woken* is set or it is *until*, if that is given."""


class WallClock:
    """The time of the machine."""

    def now(self) -> float:
        """Seconds since 1970 by the system clock."""
        return time.time()

    def stopwatch(self) -> float:
        """Seconds by a clock that is never set back."""
        return time.perf_counter()

    async def wait(self, woken: asyncio.Event, until: float | None) -> None:
        """Sleep until *woken* is set or the system clock shows *until*."""
        await wait_for(woken, None if until is None else until - self.now())


async def wait_for(woken: asyncio.Event, seconds: float | None) -> None:
    """Wait for an event, at most so many seconds; let other tasks run where they are over."""
    if seconds is not None and seconds <= 0:
        await asyncio.sleep(0)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
