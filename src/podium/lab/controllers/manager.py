"""All controllers at work: told of every write, looking at one key after the other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from podium.lab.api.resources import STORED
from podium.lab.api.status import StatusError
from podium.lab.controllers.disruption import Budgets
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import key_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.garbage_collector import Garbage
from podium.lab.controllers.namespaces import Namespaces
from podium.lab.controllers.nodes.fake_kubelet import Kubelets, Pace
from podium.lab.controllers.nodes.node_lifecycle import Nodes
from podium.lab.controllers.nodes.taint_eviction import TaintEviction
from podium.lab.controllers.services.endpoints import ServiceEndpoints
from podium.lab.controllers.services.service_allocation import ServiceAddresses
from podium.lab.controllers.storage.volume_binding import Volumes
from podium.lab.controllers.workloads.daemon_sets import DaemonSets
from podium.lab.controllers.workloads.deployments import Deployments
from podium.lab.controllers.workloads.jobs import Jobs
from podium.lab.controllers.workloads.replica_sets import ReplicaSets, ReplicationControllers
from podium.lab.controllers.workloads.stateful_sets import StatefulSets
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: How long controllers work before others get their turn, in seconds.
_TURN: Final = 0.005
#: A key that is never at peace means a bug in a controller, not more work.
_ENDLESS: Final = 1_000_000
#: Kinds that no controller reads.
_UNREAD: Final = frozenset({"Event", "Lease"})


class Controllers:
    """The controllers of a cluster, the work they have, and the task that does it."""

    def __init__(
        self,
        registry: Registry,
        now: Callable[[], float] = time.time,
        *,
        pace: Pace | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Watch *registry*; what goes wrong is told to *tell* in one sentence."""
        self.cluster = Cluster(registry, now)
        self.tell = tell
        self._stopwatch = stopwatch
        self.all: tuple[Controller, ...] = (
            Nodes(self.cluster),
            Kubelets(self.cluster, pace or Pace()),
            Volumes(self.cluster),
            ReplicationControllers(self.cluster),
            ReplicaSets(self.cluster),
            Deployments(self.cluster),
            StatefulSets(self.cluster),
            DaemonSets(self.cluster),
            Jobs(self.cluster),
            TaintEviction(self.cluster),
            Budgets(self.cluster),
            ServiceEndpoints(self.cluster),
            ServiceAddresses(self.cluster),
            Garbage(self.cluster),
            Namespaces(self.cluster),
        )
        self._hearings: dict[str, list[Hearing]] = {}
        for each in self.all:
            for kind, hearing in each.hears().items():
                self._hearings.setdefault(kind, []).append(hearing)
        self._of_pods = [each.hear_pod for each in self.all if each.hears_pods]
        self._task: asyncio.Task[None] | None = None
        self._ends = [
            registry.subscribe([row.kind], self._hearing(row.kind))
            for row in STORED.values()
            if row.kind not in _UNREAD
        ]
        self._begin()

    def _hearing(self, kind: str) -> Callable[[str, JsonObject | None, JsonObject | None], None]:
        if kind == "Pod":
            return lambda _, old, new: self._pod_changed(old, new)
        return lambda _, old, new: self._changed(kind, old, new)

    def _begin(self) -> None:
        """Hear of what is there already: everything is seen before anybody is told."""
        registry = self.cluster.registry
        found = {
            row.kind: registry.list(row.kind) for row in STORED.values() if row.kind not in _UNREAD
        }
        for kind, items in found.items():
            for item in items:
                if kind != "Pod":
                    self.cluster.seen(kind, None, item)
        for kind, items in found.items():
            for item in items:
                if kind == "Pod":
                    self._pod_changed(None, item)
                else:
                    self._changed(kind, None, item)

    def _changed(self, kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        self.cluster.seen(kind, old, new)
        for hearing in self._hearings.get(kind, ()):
            hearing(old, new)

    def _pod_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        pods = self.cluster.pods
        facts = None
        if new is not None:
            facts = PodFacts(new)
            before = pods.put(facts)
        else:
            assert old is not None
            before = pods.drop(key_of(old))
        for hearing in self._hearings.get("Pod", ()):
            hearing(old, new)
        for hear in self._of_pods:
            hear(before, facts)

    # Working
    def work(self, until: float | None = None) -> int:
        """Look at keys that are ready until there are none, or until a time; how many."""
        queue, done = self.cluster.queue, 0
        while True:
            entry: Any = queue.pop()
            if entry is None:
                break
            controller, key = entry
            begun = self._stopwatch()
            try:
                controller.sync(key)
            except StatusError as error:
                wait = queue.retry(entry)
                if wait > 1:
                    self.tell(f"{controller.name}: {key}: {error.message}")
            except Exception as error:  # noqa: BLE001  one key must not stop all others
                queue.retry(entry)
                self.tell(f"{controller.name}: {key}: {type(error).__name__}: {error}")
            else:
                queue.done(entry, self._stopwatch() - begun)
            done += 1
            if until is not None and self._stopwatch() > until:
                break
        return done

    def settle(self, advance: Callable[[float], None] | None = None, seconds: float = 0.0) -> None:
        """Work until nothing is left to do; with *advance*, also what is due within *seconds*."""
        ends = self.cluster.now() + seconds
        for _ in range(_ENDLESS):
            self.work()
            due = self.cluster.queue.next_due()
            if advance is None or due is None or due > ends:
                return
            advance(max(due - self.cluster.now(), 0.0) + 1e-6)
        raise RuntimeError("the controllers never come to rest")

    def start(self) -> None:
        """Work whenever there is something to do, beside everything else in this loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="controllers")

    async def stop(self) -> None:
        """Stop working and hearing."""
        for end in self._ends:
            end()
        self._ends.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        queue = self.cluster.queue
        woken = asyncio.Event()
        queue.woken = woken.set
        while True:
            woken.clear()
            self.work(until=self._stopwatch() + _TURN)
            due = queue.next_due()
            if due is None:
                await woken.wait()
                continue
            wait = due - self.cluster.now()
            if wait <= 0:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await woken.wait()
