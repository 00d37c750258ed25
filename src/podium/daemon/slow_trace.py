"""Decisions that take long are told with their steps.

    Scheduling default/web-0 took 173 ms: Basic checks done 1 ms; Prioritizing done 160 ms; …

Upstream: utiltrace around schedulePod, told from 100 ms on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.daemon.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.daemon.logs import Log
    from podium.daemon.observers import Attempted

SLOW_SECONDS: Final = 0.1


class Steps:
    """Takes the time at the end of each step; `mark` is what an `Attempt` is given."""

    __slots__ = ("_clock", "_last", "_taken")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self._taken: list[tuple[str, float]] = []

    def mark(self, step: str) -> None:
        """The step is done."""
        now = self._clock()
        self._taken.append((step, now - self._last))
        self._last = now

    def taken(self) -> tuple[tuple[str, float], ...]:
        """Each step and how long it took."""
        return tuple(self._taken)


class SlowTrace(Observer):
    """Tells of slow decisions."""

    def __init__(self, log: Log, seconds: float = SLOW_SECONDS) -> None:
        self._log = log
        self._seconds = seconds

    def attempted(self, attempted: Attempted) -> None:
        """Tell if it took too long."""
        if attempted.seconds < self._seconds:
            return
        rest = attempted.seconds - sum(seconds for _, seconds in attempted.steps)
        steps = [*attempted.steps, ("the rest", max(0.0, rest))]
        self._log.warning(
            f"Scheduling {attempted.pod.key} took {_milliseconds(attempted.seconds)}",
            pod=attempted.pod.key,
            profile=attempted.profile.name,
            nodes=attempted.decision.nodes,
            steps="; ".join(f"{name} {_milliseconds(seconds)}" for name, seconds in steps),
        )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
