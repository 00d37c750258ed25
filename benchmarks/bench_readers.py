"""What readers of decisions cost a scheduler: how long decisions take with and without them.

A scheduler decides about one pod after the other, as its loop does, while readers ask for the
decision about a placed pod with its causes, one question after the other. The figures are the time
from one decision to the next: its 99th percentile, and the longest.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Any

import numpy as np
from measuring import profiles, script

from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.host.cluster_program import SWITCH_SECONDS
from podium.objects.kinds.registry import KINDS
from podium.past.decisions.causes_now import causes_without
from podium.releases import DEFAULT_RELEASE
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.cluster_copy import copy_cluster
from podium.virtual_cluster.in_process_api import InProcessApi

NODES, PODS, SECONDS, READERS = 5000, 50_000, 10.0, 4


def _object(kind: str, **fields: Any) -> Any:
    return KINDS[kind].decoder.decode(json.dumps(fields))


def _pod(number: int, node: str = "") -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"nodeName": node, "containers": [container]}
    labels = {"app": f"app-{number % 100}"}
    about = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "labels": labels}
    return _object("Pod", metadata=about, spec=spec)


def filled(profile: Profile, nodes: int, pods: int) -> Scheduler:
    """A scheduler that knows a cluster."""
    scheduler = Scheduler(InProcessApi(), [profile], recorder=NoEvents())
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    for number in range(nodes):
        labels = {"kubernetes.io/hostname": f"n{number}"}
        about = {"name": f"n{number}", "labels": labels}
        scheduler.state.index("Node").put(
            _object("Node", metadata=about, status={"allocatable": room})
        )
    placed = [_pod(number, f"n{number % nodes}") for number in range(pods)]
    scheduler.state.cache.add_pods(placed)
    return scheduler


async def _read(scheduler: Scheduler, profile: Profile, recorded: Decision) -> None:
    """Ask for the causes of a decision, as `/decisions/NAMESPACE/NAME` does."""
    reading = asyncio.Lock()

    async def reader() -> None:
        while True:
            async with reading:
                cluster = await copy_cluster(scheduler.cache.columns)
                placed = await asyncio.to_thread(cluster.take, "default/p0")
                assert placed is not None
                await asyncio.to_thread(causes_without, cluster, placed, [profile], recorded)

    await asyncio.gather(*(reader() for _ in range(READERS)))


async def _gaps(scheduler: Scheduler, profile: Profile, seconds: float) -> list[float]:
    """Seconds from one decision to the next."""
    found: list[float] = []
    waiting = _pod(-1)
    ends = last = time.perf_counter()
    ends += seconds
    while last < ends:
        scheduler.look(waiting, profile)
        await asyncio.sleep(0)
        now = time.perf_counter()
        found.append(now - last)
        last = now
    return found


def _figures(gaps: list[float]) -> dict[str, float]:
    milliseconds = np.array(gaps) * 1000
    return {
        "decisions": len(gaps),
        "p50 ms": round(float(np.percentile(milliseconds, 50)), 3),
        "p99 ms": round(float(np.percentile(milliseconds, 99)), 3),
        "longest ms": round(float(milliseconds.max()), 3),
    }


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  as `script` calls it
    """The figures without and with readers, and how they compare."""
    nodes, pods, seconds = (100, 1000, 0.5) if quick else (NODES, PODS, SECONDS)
    profile = profiles()[DEFAULT_RELEASE.name]

    async def run() -> tuple[list[float], list[float]]:
        scheduler = filled(profile, nodes, pods)
        # As `podium run` does it.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_SECONDS)
        recorded = scheduler.look(_pod(0), profile)
        idle = await _gaps(scheduler, profile, seconds)
        readers = asyncio.ensure_future(_read(scheduler, profile, recorded))
        read = await _gaps(scheduler, profile, seconds)
        readers.cancel()
        await asyncio.gather(readers, return_exceptions=True)
        return idle, read

    idle, read = map(_figures, asyncio.run(run()))
    return {
        "nodes": nodes,
        "pods": pods,
        "idle": idle,
        "with readers": read,
        "p99 with readers / idle": round(read["p99 ms"] / idle["p99 ms"], 2),
        "p99 difference ms": round(read["p99 ms"] - idle["p99 ms"], 3),
    }


if __name__ == "__main__":
    script(measure)
