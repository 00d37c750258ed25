"""Pods that are measured between `startCollectingMetrics` and `stopCollectingMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium_research.bench.measurement import (
    MeasurementClocks,
    Result,
    Window,
    peak_memory_bytes,
    percentiles,
)

if TYPE_CHECKING:
    from podium.objects.kinds.pod import Pod
    from podium_research.bench.definitions import StartCollectingMetrics

#: Attempts that make up one point of the chart of throughput over time.
_WINDOW = 200


@dataclass(slots=True)
class MeasuredAttempt:
    """One attempt at a pod, or at the pods of its group."""

    #: How many pods got a node.
    placed: int = 0


class MeasuredSection:
    """The attempts at the pods of some namespaces; a pod that is tried twice counts once."""

    def __init__(
        self,
        op: StartCollectingMetrics,
        result: Result,
        clocks: MeasurementClocks,
        done: Callable[[Result], None],
    ) -> None:
        self._namespaces = frozenset(op.namespaces)
        self._labels = op.label_selector.items()
        self._result, self._clocks, self._done = result, clocks, done
        self._began = clocks.wall()
        self._seen: set[str] = set()
        self._latencies: list[float] = []
        self._window = (0.0, 0)

    def counts(self, pod: Pod) -> bool:
        """Whether attempts at a pod are measured."""
        named = not self._namespaces or pod.namespace in self._namespaces
        return named and self._labels <= pod.labels.items()

    @contextmanager
    def measuring(self, pod: Pod) -> Iterator[MeasuredAttempt]:
        """Measure one attempt."""
        tried, result = MeasuredAttempt(), self._result
        wall, cpu = self._clocks.wall(), self._clocks.cpu()
        yield tried
        took = self._clocks.wall() - wall
        result.cpu_seconds += self._clocks.cpu() - cpu
        result.seconds += took
        result.placed += tried.placed
        self._latencies.append(took)
        if pod.uid not in self._seen:
            self._seen.add(pod.uid)
            result.pods += 1
        if len(self._latencies) % _WINDOW == 0:
            self._note_window()

    def _note_window(self) -> None:
        seconds, attempts = self._window
        took = self._result.seconds - seconds
        if took:
            rate = (len(self._latencies) - attempts) / took
            self._result.windows.append(Window(self._result.seconds, rate))
        self._window = (self._result.seconds, len(self._latencies))

    def stop(self) -> None:
        """End the section; without any pod its time is that of all operations in it."""
        self._note_window()
        if not self._latencies:
            self._result.seconds = self._clocks.wall() - self._began
        self._result.latencies_ms = percentiles(self._latencies)
        self._result.peak_bytes = peak_memory_bytes()
        self._done(self._result)
