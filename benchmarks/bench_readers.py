"""What readers cost a scheduler: how long decisions and the lease take with and without them.

A scheduler decides about one pod after the other, as its loop does, while four readers ask one
question after the other, of one kind at a time: decisions with their causes, a manifest to explain,
the map of the cluster, the last decisions, a comparison of configurations. A thread wakes at
intervals, as that of the lease does. The figures are the time from one decision to the next, by the
clock and in processor time of the whole program, and how late the thread wakes. Processor time is
the steadier figure on a machine that does other work.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import numpy as np
from measuring import profiles, script

from podium.engine.framework.profile import Profile
from podium.host.cluster_program import SWITCH_SECONDS
from podium.objects.kinds.registry import KINDS
from podium.past.decisions.decision_log import DecisionLog
from podium.releases import DEFAULT_RELEASE, RELEASES
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.observers import AttemptResult
from podium.serving.endpoints.health import Health
from podium.serving.endpoints.http_server import application
from podium.serving.page_data.activity import ActivityObserver
from podium.serving.page_data.page_data import PageData
from podium.virtual_cluster.in_process_api import InProcessApi

NODES, PODS, SECONDS, READERS = 5000, 50_000, 10.0, 4
#: How often the thread wakes that stands for the lease.
WAKES_SECONDS = 0.02
#: The figures of a run without readers.
IDLE = "idle"

Question = Callable[[], Awaitable[object]]


def _object(kind: str, **fields: Any) -> Any:
    return KINDS[kind].decoder.decode(json.dumps(fields))


def _manifest(number: int, cpu: str = "10m") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": f"app-{number % 100}"}
    about = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "labels": labels}
    return {"metadata": about, "spec": {"containers": [container]}}


def _pod(number: int, node: str = "", cpu: str = "10m") -> Any:
    made = _manifest(number, cpu)
    return _object("Pod", metadata=made["metadata"], spec=made["spec"] | {"nodeName": node})


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


def questions(scheduler: Scheduler, profile: Profile) -> dict[str, Question]:
    """What readers ask, by name."""
    activity, log = ActivityObserver(), DecisionLog()
    page = PageData(scheduler, activity, log=log)
    large = _pod(-2, cpu="100")
    activity.pod_seen(None, large)
    for pod in (_pod(0), large):
        decision = scheduler.look(pod, profile)
        log.attempted(AttemptResult(pod, decision, profile, 1, time.time(), 0.001, time.time()))
    app = application(Health(), None, log)
    manifest = json.dumps({"apiVersion": "v1", "kind": "Pod"} | _manifest(-3)).encode()

    async def compare() -> None:
        async with aclosing(page.compare({"name": RELEASES[0].name})) as steps:  # type: ignore[type-var]
            async for _ in steps:
                pass

    return {
        "a pod that waits": lambda: page.decision("default", "p-2"),
        "a placed pod": lambda: page.decision("default", "p0"),
        "a manifest": lambda: page.explain(manifest),
        "the map": page.cluster,
        "the last decisions": lambda: _get(app, "/decisions", b"limit=1000"),
        "a comparison": compare,
    }


async def _get(app: Any, path: str, query: bytes) -> None:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        assert message.get("status", 200) == 200, message

    await app(scope, receive, send)


class _Waker:
    """A thread that notes by how many seconds it wakes too late."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            due = time.perf_counter() + WAKES_SECONDS
            time.sleep(WAKES_SECONDS)
            self._late.append(time.perf_counter() - due)

    def taken(self) -> list[float]:
        """What was noted since the last call."""
        late, self._late = self._late, []
        return late


async def _gaps(
    scheduler: Scheduler, profile: Profile, seconds: float
) -> tuple[list[float], list[float]]:
    """Seconds from one decision to the next, by the clock and of processor time."""
    clock: list[float] = []
    processor: list[float] = []
    waiting = _pod(-1)
    last, used = time.perf_counter(), time.process_time()
    ends = last + seconds
    while last < ends:
        scheduler.look(waiting, profile)
        await asyncio.sleep(0)
        now, spent = time.perf_counter(), time.process_time()
        clock.append(now - last)
        processor.append(spent - used)
        last, used = now, spent
    return clock, processor


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    found = np.array(seconds or [0.0]) * 1000
    return {
        "p50": round(float(np.percentile(found, 50)), 3),
        "p99": round(float(np.percentile(found, 99)), 3),
        "longest": round(float(found.max()), 3),
    }


async def _with_readers(
    ask: Question | None, scheduler: Scheduler, profile: Profile, seconds: float, waker: _Waker
) -> dict[str, Any]:
    """The figures while readers ask a question, or nothing."""
    answered = 0

    async def read() -> None:
        nonlocal answered
        while ask is not None:
            try:
                await ask()
                answered += 1
                await asyncio.sleep(0)
            except Exception as refused:  # one comparison at a time, for example
                if "running" not in str(refused):
                    raise
                await asyncio.sleep(0.05)

    readers = [asyncio.ensure_future(read()) for _ in range(READERS)]
    waker.taken()
    clock, processor = await _gaps(scheduler, profile, seconds)
    late = waker.taken()
    failed = [each for each in readers if each.done() and each.exception() and ask is not None]
    for each in readers:
        each.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    for each in failed:
        each.result()
    return {
        "decisions": len(clock),
        "answers": answered,
        "clock ms": _milliseconds(clock),
        "CPU-ms": _milliseconds(processor),
        "lease late ms": _milliseconds(late),
    }


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  as `script` calls it
    """The figures without readers, and with readers of each kind."""
    nodes, pods, seconds = (100, 1000, 0.5) if quick else (NODES, PODS, SECONDS)
    profile = profiles()[DEFAULT_RELEASE.name]

    async def run() -> dict[str, Any]:
        scheduler, waker = filled(profile, nodes, pods), _Waker()
        asked: dict[str, Question | None] = {IDLE: None, **questions(scheduler, profile)}
        # As `podium run` does it.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        sys.setswitchinterval(SWITCH_SECONDS)
        return {
            name: await _with_readers(ask, scheduler, profile, seconds, waker)
            for name, ask in asked.items()
        }

    return {"nodes": nodes, "pods": pods, "readers": READERS, "by question": asyncio.run(run())}


if __name__ == "__main__":
    script(measure)
