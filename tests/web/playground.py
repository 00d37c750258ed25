"""A scheduler without an API server, and its pages on a port: enough to drive every page.

The columns, the queue, the cycle and the page_data are the real ones; only binding is a word.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import uvicorn
from msgspec.structs import replace

from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.simulation import Simulation
from podium.cluster.wakeups.wakeups import MoveRules
from podium.engine.cycle.ties import Ties
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.objects.kinds.pod import Pod, PodCondition
from podium.objects.reading.collection import Objects
from podium.past.decisions.decision_log import DecisionLog
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.state.observers import AttemptResult
from podium.scheduler.state.options import SchedulerOptions
from podium.serving.page_data.activity import ActivityObserver
from podium.serving.page_data.page_data import PageData
from podium.web.app import pages


def default_profile() -> Profile:
    return from_provider("DefaultProvider", Options())


class Playground:
    """A scheduler whose attempts are made by the test."""

    def __init__(self, profile: Profile | None = None, *, recording: bool = True) -> None:
        self._simulation = Simulation(profile or default_profile())
        self._recording = recording
        self._pods: dict[str, Pod] = {}
        self.profiles = {self._simulation.profile.scheduler_name: self._simulation.profile}
        self.options = SchedulerOptions()
        self.cache = self._simulation.cache
        self.queue = SchedulingQueue(time.time, MoveRules())
        self._log, self._pulse = DecisionLog(), ActivityObserver()
        self.page_data = PageData(self, self._pulse, log=self._log)

    @property
    def ties(self) -> Ties:
        """The rule that breaks ties."""
        return self._simulation.ties

    async def reconfigure(self, profiles: Sequence[Profile], options: SchedulerOptions) -> None:
        fresh = Simulation(profiles[0], fast=False)
        fresh.cache = fresh.decider.cache = self.cache
        self._simulation, self.options = fresh, options
        self.profiles = {each.scheduler_name: each for each in profiles}

    def pods(self) -> Iterable[Pod]:
        """Every pod as it was created."""
        return self._pods.values()

    def look(self, pod: Pod, profile: Profile) -> Decision:
        """Decide about a pod, and change nothing."""
        return self._simulation.decider.look(pod, profile)

    def load(self, objects: Objects) -> None:
        """Take over the objects, and queue the pods that have no node."""
        self._simulation.load(objects)
        self._pods |= {pod.key: pod for pod in objects.pods}
        for pod in objects.pods:
            self._pulse.pod_seen(None, pod)
            if not pod.spec.node_name and not pod.finished:
                self.queue.add(pod)

    def create(self, pod: Pod) -> None:
        self._pods[pod.key] = pod
        self._pulse.pod_seen(None, pod)
        self.queue.add(pod)

    def delete(self, pod: Pod) -> None:
        """A pod that waits is deleted."""
        self.queue.delete(pod)
        self._pods.pop(pod.key, None)
        self._pulse.pod_seen(pod, None)

    def work(self, most: int = 1_000_000) -> int:
        """Try the pods that are ready; how many were tried."""
        for tried in range(most):
            turn = self.queue.pop()
            if turn is None:
                return tried
            self._try(turn)
        return most

    def _try(self, turn: Any) -> None:
        began = time.time()
        decision = self._simulation.attempt(turn.pod, recording=self._recording)
        attempted = AttemptResult(
            turn.pod,
            decision,
            self._simulation.profile,
            turn.number,
            began,
            time.time() - began,
            began,
        )
        self._log.attempted(attempted)
        self._pulse.attempted(attempted)
        if decision.node is None:
            self.queue.requeue(turn, _unschedulable(turn.pod))
            return
        self._simulation.place(turn.pod, decision)
        self.queue.done(turn)
        self._pulse.bound(attempted, decision.node, 0.001)


def _unschedulable(pod: Pod) -> Pod:
    """The pod with the condition of an attempt that found no node."""
    now = datetime.now(UTC).isoformat(timespec="seconds")[:-6] + "Z"
    condition = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", last_probe_time=now
    )
    return replace(pod, status=replace(pod.status, conditions=[condition]))


class Served:
    """Pages of a playground on a loopback port; what changes it runs in the server's thread."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            pages(playground.page_data),
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._runner = asyncio.Runner()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with self._runner as runner:
            runner.run(self._server.serve([self._socket]))

    def do(self, change: Callable[[Playground], Any]) -> Any:
        """Change the playground, between two requests."""

        async def changed() -> Any:
            return change(self.playground)

        return asyncio.run_coroutine_threadsafe(changed(), self._runner.get_loop()).result(30)

    @contextlib.contextmanager
    def running(self) -> Iterator[Served]:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        try:
            yield self
        finally:
            self._server.should_exit = True
            self._thread.join(10)
            self._socket.close()
