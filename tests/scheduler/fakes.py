"""The actions of a scheduler over a fake API server and a fake clock.

`Cluster` has a real cache and queue and the real actions; the API server is a script of answers,
events and reports are lists, and sleeping takes no time.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from builders import node, pod
from podium.cluster.queue.entities import Pool, Turn
from podium.engine.framework.decision import Decision
from podium.engine.framework.extenders import Extender
from podium.engine.framework.rule import PermitRule, ReserveRule
from podium.engine.state.reservation import VolumePlan
from podium.generations.v1_36 import V1_36
from podium.kube.api import MERGE_PATCH, KubeApi
from podium.kube.errors import ApiError, UnreachableError
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.placing.actions import Actions
from podium.scheduler.placing.tasks import WorkerPool
from podium.scheduler.state.behaviour import OF_CONFIGURATIONS, OF_POLICIES
from podium.scheduler.state.clock import Clocks
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.scheduler.state.options import SchedulerOptions

PROFILES = {
    "v1.13": (from_provider("DefaultProvider", Options()), OF_POLICIES),
    "v1.36": (from_config(default_config(generation=V1_36), Options())[0], OF_CONFIGURATIONS),
    "v1.37": (from_config(default_config(), Options())[0], OF_CONFIGURATIONS),
}
#: The versions that tests with a version are about: the oldest and the default one.
VERSIONS = ["v1.13", "v1.37"]
NOON = 1_800_000_000.0


def refused(status: int, message: str = "no", *, retry_after: float | None = None) -> ApiError:
    """The API server's refusal with a code."""
    return ApiError(message, status=status, retry_after=retry_after)


LOST = UnreachableError("no answer in time")


class NoServer(KubeApi):
    """An API server of which only those requests are answered that a subclass has."""

    async def request(self, *given: Any, **named: Any) -> bytes:
        raise AssertionError(given)

    def stream(self, *given: Any, **named: Any) -> AbstractAsyncContextManager[Any]:
        raise AssertionError(given)


class FakeApi(NoServer):
    """Keeps the requests, and answers each kind of request by a script; by default with success."""

    def __init__(self) -> None:
        self.requests: list[tuple[Any, ...]] = []
        #: Request -> the answers to come: an exception to raise, or what to return.
        self.answers: dict[str, deque[Any]] = defaultdict(deque)

    def script(self, request: str, *answers: Any) -> None:
        self.answers[request].extend(answers)

    def _answer(self, request: str, *given: Any) -> Any:
        self.requests.append((request, *given))
        answer = self.answers[request].popleft() if self.answers[request] else None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def named(self, request: str) -> list[list[Any]]:
        """What was given with each request of a kind."""
        return [given for name, *given in self.requests if name == request]

    async def bind(self, namespace: str, name: str, uid: str, node: str, **limits: float) -> None:
        self._answer("bind", f"{namespace}/{name}", uid, node, limits["timeout"])

    async def get(self, path: str, params: Any = None) -> Any:
        return self._answer("get", path)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self._answer("delete", f"{namespace}/{name}", uid)

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        self._answer("status", f"{namespace}/{name}", patch["status"])

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        return self._answer("patch", path, patch)

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        return self._answer("create", path, obj)

    async def delete(self, path: str, options: Mapping[str, Any] | None = None) -> Any:
        return self._answer("delete object", path, options)


class Events:
    """A recorder that keeps what it is given: reason and message per object."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, str]] = []

    def record(self, about: Pod, kind: str, reason: str, message: str, **_: Any) -> None:
        assert kind == ("Warning" if reason == "FailedScheduling" else "Normal")
        self.written.append((about.key, reason, message))


class Reports(Observer):
    """An observer that keeps the reports about bindings, evictions and queues."""

    def __init__(self) -> None:
        self.bound_pods: list[tuple[str, str, float]] = []
        self.failures: list[tuple[str, str, str]] = []
        self.evicted: list[tuple[str, list[str]]] = []
        self.queues: list[str] = []

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:
        self.bound_pods.append((result.pod.key, node, seconds))

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        self.failures.append((result.pod.key, node, error))

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        self.evicted.append((result.pod.key, list(victims)))

    def queued(self, queue: str, event: str, pods: int = 1) -> None:
        if event == "ScheduleAttemptFailure":
            self.queues.append(str(queue))


class FakeTime:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = NOON
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Cluster:
    """One scheduler's state and actions; `attempt` takes a pod from the queue as the loop does."""

    def __init__(
        self,
        *objects: Node | Pod,
        version: str = "v1.37",
        by_extender: Any = None,
        ignorable: bool = False,
        volume_seconds: float = 600.0,
        reserves: tuple[ReserveRule, ...] = (),
        permits: tuple[PermitRule, ...] = (),
    ) -> None:
        profile, behaviour = PROFILES[version]
        profile = replace(profile, reserves=reserves, permits=permits)
        if by_extender is not None:
            extender = Extender("http://127.0.0.1:9", bind_verb="bind", ignorable=ignorable)
            profile = replace(profile, extenders=(extender,))
        self.profile = profile
        self.api, self.events, self.reports, self.time = FakeApi(), Events(), Reports(), FakeTime()
        self.state = ClusterState(
            {profile.scheduler_name: profile}, behaviour, self.time, [self.reports]
        )
        self.workers = WorkerPool(4)
        self.actions = Actions(
            self.api,
            self.state,
            self.events,
            options=SchedulerOptions(
                behaviour=behaviour,
                volume_seconds=volume_seconds,
                volume_poll_seconds=0.25,
            ),
            observers=[self.reports],
            bindings=self.workers,
            writes=self.workers,
            clocks=Clocks(self.time, self.time, self.time, self.time.sleep),
            bind_by_extender=by_extender,
            rng=random.Random(0),  # noqa: S311
        )
        for item in objects:
            self.put(item)

    def put(self, item: Any) -> None:
        """Report an object as its informer does."""
        self.state.index(item.kind).put(item)

    def drop(self, item: Any) -> None:
        self.state.index(item.kind).drop(item)

    def attempt(
        self, *, volumes: VolumePlan | None = None, **decided: Any
    ) -> tuple[Turn, AttemptResult]:
        """Take the next pod, which was decided like this; one with a node is assumed."""
        turn = self.state.queue.pop()
        assert turn is not None
        decision = Decision(turn.pod.key, turn.pod.uid, self.profile.name, nodes=1, **decided)
        if volumes is not None:
            decision.reservations = {"volumes": volumes}
        result = AttemptResult(turn.pod, decision, self.profile, turn.number, NOON, 0.0, NOON)
        if decision.node is not None:
            self.state.cache.assume(turn.pod, decision.node, decision.reservations)
            self.state.queue.done(turn)
        return turn, result

    def bind(self, node: str = "n1", **decided: Any) -> None:
        """Decide that the next pod goes to a node, and carry that out to the end."""
        self.carry_out(*self.attempt(node=node, **decided))

    def carry_out(self, turn: Turn, result: AttemptResult) -> None:
        """Bind a pod that was decided, to the end."""

        async def run() -> None:
            self.actions.binder.start(turn, result)
            await self.finish()

        asyncio.run(run())

    def fail(self, **decided: Any) -> None:
        """Decide that the next pod fits nowhere, and carry that out to the end."""

        async def run() -> None:
            self.actions.failure_handler.not_decided(*self.attempt(**decided))
            await self.finish()

        asyncio.run(run())

    async def finish(self) -> None:
        actions = self.actions
        while actions.pre_bind:  # noqa: ASYNC110  tasks of their own
            await asyncio.sleep(0)
        assert await self.workers.drain(10)
        while actions.failure_handler.retrying:  # noqa: ASYNC110  tasks of their own
            await asyncio.sleep(0)

    def pool(self, waiting: Pod) -> Pool | None:
        return self.state.queue.pool_of(waiting)

    def placed(self) -> dict[str, str]:
        """Pod -> node, as the cache has it."""
        columns = self.state.cache.columns
        rows = enumerate(columns.pods.residents)
        return {each.key: columns.nodes.names[row] for row, residents in rows for each in residents}


def waiting(name: str = "a", **options: Any) -> Pod:
    """A pending pod whose uid is its name."""
    return pod(name, uid=name, **options)


def running(name: str, on: str = "n1", **options: Any) -> Pod:
    """A placed pod whose uid is its name."""
    return pod(name, uid=name, node=on, **options)


def cluster(*objects: Any, **options: Any) -> Cluster:
    """A node n1, a pending pod `a`, and these objects."""
    return Cluster(node("n1"), *objects, waiting(), **options)


def as_read(name: str, uid: str, on: str = "") -> dict[str, Any]:
    """A pod as the API server returns it."""
    return {"metadata": {"name": name, "uid": uid}, "spec": {"nodeName": on} if on else {}}
