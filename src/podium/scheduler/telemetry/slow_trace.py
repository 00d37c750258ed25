"""Logs slow decisions with the duration of each step.

    Scheduling default/web-0 took 173 ms: Basic checks done 1 ms; Prioritizing done 160 ms; …

Upstream: utiltrace around schedulePod, which logs from 100 ms on, as information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.scheduler.state.observers import AttemptResult
    from podium.scheduler.telemetry.logs import Log

SLOW_SECONDS: Final = 0.1


class Steps:
    """Measures the steps of one attempt; `mark` is handed to the engine's `Attempt`."""

    __slots__ = ("_clock", "_last", "_taken")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self._taken: list[tuple[str, float]] = []

    def mark(self, step: str) -> None:
        """End the step that is under way, and name it."""
        now = self._clock()
        self._taken.append((step, now - self._last))
        self._last = now

    def taken(self) -> tuple[tuple[str, float], ...]:
        """The name and duration of each step."""
        return tuple(self._taken)


class SlowTrace(Observer):
    """Logs each decision that took *seconds* or more."""

    def __init__(self, log: Log, seconds: float = SLOW_SECONDS) -> None:
        self._log = log
        self._seconds = seconds

    def attempted(self, result: AttemptResult) -> None:
        """Log the attempt if it was slow."""
        if result.seconds < self._seconds:
            return
        rest = result.seconds - sum(seconds for _, seconds in result.steps)
        steps = [*result.steps, ("the rest", max(0.0, rest))]
        self._log.info(
            f"Scheduling {result.pod.key} took {_milliseconds(result.seconds)}",
            pod=result.pod.key,
            profile=result.profile.name,
            nodes=result.decision.nodes,
            steps="; ".join(f"{name} {_milliseconds(seconds)}" for name, seconds in steps),
        )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
