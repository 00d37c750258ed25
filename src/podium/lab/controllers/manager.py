"""The controller manager: calls controllers for every write and syncs the keys they enqueue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from podium.errors import InputError
from podium.lab.api.resources import RECORDS_ONLY, STORED
from podium.lab.api.status import StatusError
from podium.lab.controllers.autoscaling import HorizontalAutoscaler
from podium.lab.controllers.device_driver import DeviceDriver, DeviceSet
from podium.lab.controllers.disruption import DisruptionController
from podium.lab.controllers.endpoints import EndpointsController
from podium.lab.controllers.event_expiry import EventExpiry
from podium.lab.controllers.fake_kubelet import FakeKubelet, KubeletTimings
from podium.lab.controllers.framework.clock import Clock
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Handler, changed
from podium.lab.controllers.framework.object_fields import key_of
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.controllers.framework.work_queue import FAILING_RETRY_SECONDS
from podium.lab.controllers.garbage_collector import GarbageCollector
from podium.lab.controllers.namespaces import (
    CustomResourceCleanup,
    NamespaceContentsController,
    NamespaceController,
)
from podium.lab.controllers.node_lifecycle import NodeLifecycleController
from podium.lab.controllers.quotas import QuotaController
from podium.lab.controllers.resource_claims import ResourceClaimController
from podium.lab.controllers.taint_eviction import TaintEvictionController
from podium.lab.controllers.volume_binding import PersistentVolumeController
from podium.lab.controllers.workloads.cron_jobs import CronJobController
from podium.lab.controllers.workloads.daemon_sets import DaemonSetController
from podium.lab.controllers.workloads.deployments import DeploymentController
from podium.lab.controllers.workloads.jobs import JobController
from podium.lab.controllers.workloads.replica_sets import ReplicaSetController, ReplicationManager
from podium.lab.controllers.workloads.stateful_sets import StatefulSetController
from podium.lab.registry.registry import Registry
from podium.lab.store.imported_pods import ImportedPod, head_of, read_head
from podium.objects.kinds.meta import JsonObject

#: Seconds that the manager syncs keys before other tasks get their turn.
_TIME_SLICE: Final = 0.005


class ControllerManager:
    """All controllers of the lab over one registry."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        *,
        timings: KubeletTimings | None = None,
        devices: Sequence[DeviceSet] = (),
        warn: Callable[[str], None] = lambda _: None,
        without: Collection[type[Controller[Any]]] = (),
        also: Sequence[Callable[[Cluster], Controller[Any]]] = (),
    ) -> None:
        """Watch *registry* from now on; errors of syncs are reported to *warn*.

        *devices* are what the driver publishes on nodes. The controllers of *without* do not run;
        those of *also* run beside the others.
        """
        self.cluster = Cluster(registry, clock)
        self._clock = clock
        self._warn = warn
        every: tuple[Controller[Any], ...] = (
            NodeLifecycleController(self.cluster),
            FakeKubelet(self.cluster, timings or KubeletTimings()),
            PersistentVolumeController(self.cluster),
            ResourceClaimController(self.cluster),
            DeviceDriver(self.cluster, devices),
            ReplicationManager(self.cluster),
            ReplicaSetController(self.cluster),
            DeploymentController(self.cluster),
            StatefulSetController(self.cluster),
            DaemonSetController(self.cluster),
            JobController(self.cluster),
            CronJobController(self.cluster),
            HorizontalAutoscaler(self.cluster),
            TaintEvictionController(self.cluster),
            DisruptionController(self.cluster),
            EndpointsController(self.cluster),
            GarbageCollector(self.cluster),
            NamespaceController(self.cluster),
            NamespaceContentsController(self.cluster),
            CustomResourceCleanup(self.cluster),
            QuotaController(self.cluster),
            EventExpiry(self.cluster),
            *(make(self.cluster) for make in also),
        )
        self.controllers = tuple(each for each in every if type(each) not in without)
        self._handlers: dict[str, list[Handler]] = {}
        for controller in self.controllers:
            for kind, handler in controller.handlers.items():
                self._handlers.setdefault(kind, []).append(handler)
        self._pod_handlers = [
            controller.pod_handler
            for controller in self.controllers
            if controller.pod_handler is not None
        ]
        self._custom_handlers = [
            controller.custom_handler
            for controller in self.controllers
            if controller.custom_handler is not None
        ]
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe = [
            registry.subscribe([kind], self._subscriber(kind)) for kind in self._kinds()
        ]
        self._unsubscribe.append(
            registry.subscribe_custom(lambda _, old, new: self._on_custom(old, new))
        )
        self._list_all()

    def _kinds(self) -> list[str]:
        return [row.kind for row in STORED.values() if row.kind not in RECORDS_ONLY]

    def _subscriber(self, kind: str) -> Callable[[str, JsonObject | None, JsonObject | None], None]:
        if kind == "Pod":
            return lambda _, old, new: self._on_pod(old, new)
        return lambda _, old, new: self._on_object(kind, old, new)

    def _list_all(self) -> None:
        """Fill the cache with all objects, then call the handlers as if each was just created.

        Pods come last: the garbage collector then knows all their owners.
        """
        registry = self.cluster.registry
        listed = {kind: registry.list(kind) for kind in self._kinds() if kind != "Pod"}
        for resource in registry.custom.stored():
            for item in registry.list(resource.storage):
                self._on_custom(None, item)
        for kind, items in listed.items():
            for item in items:
                self.cluster.observe(kind, None, item)
        for kind, items in listed.items():
            for item in items:
                for handler in self._handlers.get(kind, ()):
                    handler(None, item)
        self._list_pods()

    def _list_pods(self) -> None:
        """Fill the index of pods, then call the handlers for listed pods."""
        pods = self.cluster.pods
        for record in self.cluster.registry.store.table("pods").ordered():
            head = record.head if isinstance(record, ImportedPod) else read_head(record.data)
            pods.put(PodInfo(head))
        for controller in self.controllers:
            if controller.listed_pods_handler is not None:
                controller.listed_pods_handler(pods)

    def _on_custom(self, old: JsonObject | None, new: JsonObject | None) -> None:
        resource = self.cluster.registry.custom.of_object(changed(old, new))
        if resource is not None:
            for handler in self._custom_handlers:
                self._call(handler, resource.storage, old, new)

    def _call(self, handler: Callable[..., None], *arguments: Any) -> None:
        """Call a handler of a write; one that fails hides the write from no other."""
        try:
            handler(*arguments)
        except InputError:
            raise  # an imported object cannot be read
        except Exception as error:  # noqa: BLE001  whatever is wrong with the object
            self._warn(f"{handler.__qualname__}: {type(error).__name__}: {error}")

    def _on_object(self, kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        self.cluster.observe(kind, old, new)
        for handler in self._handlers.get(kind, ()):
            self._call(handler, old, new)

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        pods = self.cluster.pods
        info = None
        if new is not None:
            info = PodInfo(head_of(new))
            before = pods.put(info)
        else:
            assert old is not None
            before = pods.drop(key_of(old))
        for handler in self._handlers.get("Pod", ()):
            self._call(handler, old, new)
        for pod_handler in self._pod_handlers:
            self._call(pod_handler, before, info)

    def sync_ready(self, until: float | None = None) -> int:
        """Sync keys until none is ready, or the stopwatch passes *until*; returns how many."""
        queue, synced = self.cluster.queue, 0
        while True:
            entry: Any = queue.pop()
            if entry is None:
                break
            controller, key = entry
            started = self._clock.stopwatch()
            try:
                controller.sync(key)
            except StatusError as error:
                wait = queue.retry(entry)
                if wait > FAILING_RETRY_SECONDS:
                    self._warn(f"{controller.name}: {key}: {error.message}")
            except InputError:
                raise  # an imported object cannot be read: retrying does not help
            except Exception as error:  # noqa: BLE001  one key must not stop all others
                queue.retry(entry)
                self._warn(f"{controller.name}: {key}: {type(error).__name__}: {error}")
            else:
                queue.done(entry, self._clock.stopwatch() - started)
            synced += 1
            if until is not None and self._clock.stopwatch() > until:
                break
        return synced

    def start(self) -> None:
        """Start a task that syncs keys whenever they are ready."""
        self._task = asyncio.get_running_loop().create_task(self.run(), name="controllers")

    async def stop(self) -> None:
        """Stop watching, and end the task if it was started."""
        self.unsubscribe()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def unsubscribe(self) -> None:
        """Stop watching the registry."""
        for end in self._unsubscribe:
            end()
        self._unsubscribe.clear()

    async def run(self) -> None:
        """Sync keys as they become ready, in time slices, until cancelled."""
        queue = self.cluster.queue
        woken = asyncio.Event()
        queue.on_wake = woken.set
        while True:
            woken.clear()
            self.sync_ready(until=self._clock.stopwatch() + _TIME_SLICE)
            await self._clock.wait(woken, queue.next_due())
