"""Measures scheduling: wall time, CPU time, latency and memory.

Pods are scheduled in chunks. The time between chunks is not measured, so that a progress bar does
not count. Each chunk is a point in the chart of throughput over time.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.plan import PlanLine
    from podium.objects.kinds.pod import Pod
    from podium_research.bench.definitions import StartCollectingMetrics
    from podium_research.bench.executor import WorkloadExecutor

_CHUNKS = 50
_STATUS = Path("/proc/self/status")
_RESET_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Window:
    """One chunk of a measurement: the seconds at its end, and its throughput."""

    seconds: float
    pods_per_second: float


@dataclass(slots=True)
class Result:
    """The figures of one measured operation, or the reason why it was skipped."""

    workload: str
    profile: str
    path: str = "fast"
    nodes: int = 0
    existing: int = 0
    pods: int = 0
    placed: int = 0
    victims: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    latencies_ms: tuple[float, float, float] = (0.0, 0.0, 0.0)
    peak_bytes: int = 0
    windows: list[Window] = field(default_factory=list)
    skipped: str = ""
    #: What is done about each rule for the measured pods, by the last of them.
    plan: list[PlanLine] = field(default_factory=list)

    @property
    def pods_per_second(self) -> float:
        """Throughput by wall time."""
        return self.pods / self.seconds if self.seconds else 0.0

    @property
    def cpu_ms_per_pod(self) -> float:
        """CPU time per pod; it varies less than wall time on a busy machine."""
        return self.cpu_seconds * 1000 / self.pods if self.pods else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data for JSON and YAML."""
        head = {"workload": self.workload, "profile": self.profile}
        if self.skipped:
            return {**head, "skipped": self.skipped}
        names = ("p50", "p90", "p99")
        return {
            **head,
            "path": self.path,
            "nodes": self.nodes,
            "existingPods": self.existing,
            "pods": self.pods,
            "placed": self.placed,
            "victims": self.victims,
            "seconds": round(self.seconds, 6),
            "podsPerSecond": round(self.pods_per_second, 1),
            "cpuMsPerPod": round(self.cpu_ms_per_pod, 4),
            "latencyMs": {
                name: round(value, 4) for name, value in zip(names, self.latencies_ms, strict=True)
            },
            "peakMemoryMiB": round(self.peak_bytes / 2**20, 1),
            "throughput": [
                {"seconds": round(w.seconds, 6), "podsPerSecond": round(w.pods_per_second, 1)}
                for w in self.windows
            ],
        }


@dataclass(frozen=True, slots=True)
class MeasurementClocks:
    """The clocks of a measurement."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


def measure_pods(
    executor: WorkloadExecutor,
    pods: Sequence[Pod],
    result: Result,
    clocks: MeasurementClocks,
    progress: Callable[[int], None],
) -> None:
    """Schedule the pods one after the other and write the figures to *result*."""
    latencies: list[float] = []
    victims = executor.victims
    # The objects of the cluster stay alive; without them a collection is short.
    gc.collect()
    gc.freeze()
    for chunk in _chunks(pods):
        took = _schedule(executor, chunk, result, latencies, clocks)
        result.windows.append(Window(result.seconds, len(chunk) / took if took else 0.0))
        progress(len(chunk))
    gc.unfreeze()
    result.latencies_ms = percentiles(latencies)
    result.victims = executor.victims - victims
    result.peak_bytes = peak_memory_bytes()


def measure_batches(
    executor: WorkloadExecutor,
    batches: Iterator[Sequence[Pod]],
    seconds: float,
    result: Result,
    clocks: MeasurementClocks,
) -> None:
    """Schedule batch after batch for some time; each is deleted before the next one is made.

    Only scheduling is measured.
    """
    latencies: list[float] = []
    ends = clocks.wall() + seconds
    gc.collect()
    gc.freeze()
    for batch in batches:
        _schedule(executor, batch, result, latencies, clocks)
        for pod in batch:
            executor.delete_pod(pod.uid)
        if clocks.wall() >= ends:
            break
    gc.unfreeze()
    result.windows.append(Window(result.seconds, result.pods_per_second))
    result.latencies_ms = percentiles(latencies)
    result.peak_bytes = peak_memory_bytes()


def _schedule(
    executor: WorkloadExecutor,
    pods: Sequence[Pod],
    result: Result,
    latencies: list[float],
    clocks: MeasurementClocks,
) -> float:
    """Schedule some pods, and add what that took to the result; the seconds of it."""
    wall, cpu, schedule, placed = clocks.wall, clocks.cpu, executor.schedule, 0
    began, began_cpu = wall(), cpu()
    for pod in pods:
        if executor.has_background:
            executor.tick()
        start = wall()
        placed += schedule(pod)
        latencies.append(wall() - start)
    took = wall() - began
    result.placed += placed
    result.cpu_seconds += cpu() - began_cpu
    result.seconds += took
    result.pods += len(pods)
    return took


def percentiles(latencies: Sequence[float]) -> tuple[float, float, float]:
    """The medians, and what 90 and 99 of 100 do not exceed, in milliseconds."""
    if not latencies:
        return (0.0, 0.0, 0.0)
    places = np.linspace(0, 100, len(latencies))
    p50, p90, p99 = np.interp((50, 90, 99), places, sorted(latencies)) * 1000
    return float(p50), float(p90), float(p99)


def _chunks(pods: Sequence[Pod]) -> Iterator[Sequence[Pod]]:
    size = max(1, -(-len(pods) // _CHUNKS))
    for start in range(0, len(pods), size):
        yield pods[start : start + size]


def reset_peak_memory() -> None:
    """Start a new measurement of peak memory, where the operating system allows that."""
    try:
        _RESET_PEAK.write_text("5")
    except OSError:
        return


def peak_memory_bytes() -> int:
    """The peak memory of this process since the last reset, or since its start."""
    try:
        lines = _STATUS.read_text().splitlines()
        high = next(line for line in lines if line.startswith("VmHWM:"))
        return int(high.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


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
