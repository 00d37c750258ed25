"""A clock whose time moves by hand, or by waiting."""

from __future__ import annotations

import asyncio

START = 1_700_000_000.0


class VirtualClock:
    """Time that stands still while controllers sync: no sync counts as slow."""

    def __init__(self, start: float = START) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def stopwatch(self) -> float:
        return 0.0

    def advance(self, seconds: float) -> None:
        self.time += seconds

    async def wait(self, woken: asyncio.Event, until: float | None) -> None:
        """Let other tasks run; if they give no work, jump to the time that is waited for."""
        await asyncio.sleep(0)
        if woken.is_set():
            return
        if until is None:
            await woken.wait()
        else:
            self.time = max(self.time, until)
