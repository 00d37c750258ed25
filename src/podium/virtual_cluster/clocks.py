"""The clocks of schedulers and controllers on a virtual event loop."""

from __future__ import annotations

import asyncio
from typing import Final

from podium.scheduler.state.clock import Clocks
from podium.virtual_cluster.event_loop import VirtualEventLoop

#: The wall clock when a simulation begins, unless told otherwise: 2026-01-01T00:00:00Z.
START: Final = 1_767_225_600.0


class VirtualClock:
    """One machine's time: the wall clock of the loop, with an error of its own.

    It is the clock of the lab's controllers and of the registry; `clocks` are those of a scheduler.
    `rate` is the speed of the machine's clocks compared with the loop: 1.01 runs 1 % fast.
    `set_forward` sets the wall clock forward or back, as a person or a time server would; what is
    measured by the steady clock does not notice.
    """

    def __init__(self, loop: VirtualEventLoop, *, start: float = START, rate: float = 1.0) -> None:
        self._loop, self._start, self._rate = loop, start, rate
        self._wall_error = 0.0

    def set_forward(self, seconds: float) -> None:
        """Change what the wall clock shows by so many seconds, which may be negative."""
        self._wall_error += seconds

    def now(self) -> float:
        """Seconds since 1970 by the wall clock of this machine."""
        return self.steady() + self._wall_error

    def steady(self) -> float:
        """Seconds since 1970 by a clock that is never set."""
        return self._start + self.stopwatch()

    def stopwatch(self) -> float:
        """Seconds since the loop was made, as this machine counts them."""
        return self._loop.time() * self._rate

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this machine."""
        await asyncio.sleep(seconds / self._rate)

    async def wait(self, woken: asyncio.Event, until: float | None) -> None:
        """Let other tasks run until *woken* is set or the wall clock shows *until*, if given."""
        if until is None:
            await woken.wait()
            return
        seconds = (until - self.now()) / self._rate
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass

    def clocks(self) -> Clocks:
        """The clocks of a scheduler on this machine."""
        return Clocks(wall=self.now, steady=self.steady, timer=self.stopwatch, sleep=self.sleep)
