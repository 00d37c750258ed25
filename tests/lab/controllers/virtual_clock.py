"""A clock whose time moves by hand."""

from __future__ import annotations

from podium.lab.controllers.framework.clock import WallClock

START = 1_700_000_000.0


class VirtualClock(WallClock):
    """Time that stands still while controllers sync: no sync counts as slow."""

    def __init__(self, start: float = START) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def stopwatch(self) -> float:
        return 0.0

    def advance(self, seconds: float) -> None:
        self.time += seconds
