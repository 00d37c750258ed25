"""What deciding about pods costs: time, processor time, latency, memory.

Pods are measured in chunks. Between chunks the watch stands still, so a progress bar costs
nothing; the chunks are also the points of the chart of throughput over time.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.bench.cluster import World
    from podium.objects.kinds.pod import Pod

_CHUNKS = 50
_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the measurement: when it ended, and how fast it was."""

    seconds: float
    pods_per_second: float


@dataclass(slots=True)
class Result:
    """The figures of one measured operation, or why there are none."""

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

    @property
    def pods_per_second(self) -> float:
        """By the clock on the wall."""
        return self.pods / self.seconds if self.seconds else 0.0

    @property
    def cpu_ms_per_pod(self) -> float:
        """Processor time; steadier than the wall clock on a machine with other work."""
        return self.cpu_seconds * 1000 / self.pods if self.pods else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON and YAML."""
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
class Clocks:
    """Where time comes from."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


def measure(
    world: World,
    pods: Sequence[Pod],
    result: Result,
    clocks: Clocks,
    progress: Callable[[int], None],
) -> None:
    """Decide about the pods, one after the other, and fill in the figures."""
    wall, cpu = clocks.wall, clocks.cpu
    latencies: list[float] = []
    victims = world.victims
    # What is there by now stays; the garbage collector need not look at it again.
    gc.collect()
    gc.freeze()
    for chunk in _chunks(pods):
        began, began_cpu = wall(), cpu()
        for pod in chunk:
            if world.is_busy:
                world.tick()
            start = wall()
            result.placed += world.schedule(pod)
            latencies.append(wall() - start)
        took = wall() - began
        result.cpu_seconds += cpu() - began_cpu
        result.seconds += took
        result.pods += len(chunk)
        result.windows.append(Window(result.seconds, len(chunk) / took if took else 0.0))
        progress(len(chunk))
    gc.unfreeze()
    if latencies:
        p50, p90, p99 = np.percentile(latencies, (50, 90, 99)) * 1000
        result.latencies_ms = (float(p50), float(p90), float(p99))
    result.victims = world.victims - victims
    result.peak_bytes = peak_bytes()


def _chunks(pods: Sequence[Pod]) -> Iterator[Sequence[Pod]]:
    size = max(1, -(-len(pods) // _CHUNKS))
    for start in range(0, len(pods), size):
        yield pods[start : start + size]


def forget_peak() -> None:
    """Start looking for the peak of memory anew, where the system lets us."""
    try:
        _FORGET.write_text("5")
    except OSError:
        return


def peak_bytes() -> int:
    """The most memory that this process held since the peak was forgotten, or ever."""
    try:
        lines = _STATUS.read_text().splitlines()
        high = next(line for line in lines if line.startswith("VmHWM:"))
        return int(high.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
