"""What readers cost a scheduler: how long decisions and the lease take with and without them.

A scheduler decides about one pod after the other, as its loop does, while four readers ask one
question after the other, of one kind at a time: decisions with their causes, a manifest to explain,
the map of the cluster, a search for pods, the last decisions, a comparison of configurations. A
thread wakes at intervals, as that of the lease does. The figures are the time from one decision to
the next, by the clock and in processor time of the whole program, and how late the thread wakes.
Processor time is the steadier figure on a machine that does other work.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
from measuring import profiles, script

from podium.engine.framework.profile import Profile
from podium.host.cluster_program import SWITCH_SECONDS
from podium.host.event_loop import collect_rarely
from podium.host.loop_thread import LoopThread
from podium.host.serving_thread import AcrossLoops
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
from podium.web.app import pages
from podium.web.page_access import PagesBeside

NODES, PODS, SECONDS, READERS = 5000, 50_000, 10.0, 4
#: How often the thread wakes that stands for the lease.
WAKES_SECONDS = 0.02
#: The figures of a run without readers.
IDLE = "idle"


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


def served(scheduler: Scheduler, profile: Profile) -> Any:
    """The endpoints and pages of the scheduler, with decisions about a placed and a large pod."""
    activity, log = ActivityObserver(), DecisionLog()
    page = PageData(scheduler, activity, log=log)
    large = _pod(-2, cpu="100")
    activity.pod_seen(None, large)
    for pod in (_pod(0), large):
        decision = scheduler.look(pod, profile)
        log.attempted(AttemptResult(pod, decision, profile, 1, time.time(), 0.001, time.time()))
    return PagesBeside(application(Health(), None, log), pages(page, read_only=True))


#: What readers ask: a path, its query, and what is posted, if anything.
QUESTIONS: dict[str, tuple[str, str, Any]] = {
    "a pod that waits": ("/podium/v1/decisions/default/p-2", "", None),
    "a placed pod": ("/podium/v1/decisions/default/p0", "", None),
    "a manifest": ("/podium/v1/explain", "", {"apiVersion": "v1", "kind": "Pod", **_manifest(-3)}),
    "the map": ("/podium/v1/cluster", "", None),
    "a search": ("/podium/v1/pods", "q=nothing", None),
    "the last decisions": ("/decisions", "limit=1000", None),
    "a comparison": ("/podium/v1/compare", "", {"name": RELEASES[0].name}),
}


async def _ask(app: Any, path: str, query: str, posted: Any, left: asyncio.Event) -> bool:
    """Ask, as an HTTP server does; whether it was answered, and not refused for the moment.

    The client ends the connection when it has *left*.
    """
    body = b"" if posted is None else json.dumps(posted).encode()
    method = "GET" if posted is None else "POST"
    scope = {"type": "http", "method": method, "path": path, "root_path": ""}
    scope |= {"query_string": query.encode(), "headers": []}
    status, asked = 0, False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await left.wait()
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    assert status in {200, 422}, (path, status)
    return status == 200


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
    ask: Callable[[asyncio.Event], Awaitable[bool]] | None,
    scheduler: Scheduler,
    profile: Profile,
    seconds: float,
    waker: _Waker,
) -> dict[str, Any]:
    """The figures while readers ask a question, or nothing, in the thread of the HTTP servers."""
    answered, left = 0, asyncio.Event()

    async def read() -> None:
        nonlocal answered
        while ask is not None and not left.is_set():
            answered += await ask(left)
            await asyncio.sleep(0.001)

    async def read_all() -> None:
        await asyncio.gather(*(read() for _ in range(READERS)))

    async def leave() -> None:
        left.set()

    async with LoopThread("HTTP servers") as thread:
        readers = asyncio.ensure_future(thread.run(read_all()))
        waker.taken()
        clock, processor = await _gaps(scheduler, profile, seconds)
        late = waker.taken()
        await thread.run(leave())
        await readers
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
        app = AcrossLoops(served(scheduler, profile), asyncio.get_running_loop())
        asked = {name: partial(_ask, app, *each) for name, each in QUESTIONS.items()}
        # As `podium run` does it.
        gc.collect()
        collect_rarely()
        sys.setswitchinterval(SWITCH_SECONDS)
        return {
            name: await _with_readers(ask, scheduler, profile, seconds, waker)
            for name, ask in {IDLE: None, **asked}.items()
        }

    return {"nodes": nodes, "pods": pods, "readers": READERS, "by question": asyncio.run(run())}


if __name__ == "__main__":
    script(measure)
