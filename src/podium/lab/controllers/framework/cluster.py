"""The cluster as controllers read and write it: cache, registry, events.

Cached objects are shared and must not be changed in place. Every write updates the cache before it
returns, so a controller always reads its own writes. An event that was recorded before is counted
instead of created again. A token bucket limits how many events are written; those beyond it are
dropped.

Upstream: client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from podium.lab.api.encoding import format_time
from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError, ignoring
from podium.lab.controllers.framework.clock import Clock
from podium.lab.controllers.framework.object_fields import Key, key_of, remove_finalizer, uid_of
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.lab.controllers.framework.work_queue import WorkQueue
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

_BURST: Final = 200.0
_PER_SECOND: Final = 20.0
_REMEMBERED: Final = 4096

_Identity = tuple[str, str, str, str]  # uid, reason, message, component


class ControllerEvents:
    """Writes events about objects, within a budget."""

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        """Write to *registry*; *now* reads the time."""
        self._registry = registry
        self._now = now
        self._tokens = _BURST
        self._refilled = now()
        self._recorded: OrderedDict[_Identity, Key] = OrderedDict()
        self._last_name = 0

    def has_budget(self) -> bool:
        """Whether an event recorded now would be written."""
        return self._tokens_at(self._now()) >= 1

    def _tokens_at(self, now: float) -> float:
        return min(self._tokens + (now - self._refilled) * _PER_SECOND, _BURST)

    def record(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> None:
        """Record an event of a type (*kind*) about an object."""
        now = self._now()
        tokens = self._tokens_at(now)
        if tokens < 1:
            return
        self._tokens, self._refilled = tokens - 1, now
        identity = (about["metadata"]["uid"], reason, message, component)
        before = self._recorded.get(identity)
        if before is None or not self._count(before):
            key = self._create(about, kind, reason, message, component)
            if key is not None:
                self._recorded[identity] = key
                if len(self._recorded) > _REMEMBERED:
                    self._recorded.popitem(last=False)

    def _next_name(self) -> int:
        """The time in nanoseconds, never the same twice: names sort in the order of events."""
        self._last_name = max(self._last_name + 1, int(self._now() * 1e9))
        return self._last_name

    def _count(self, key: Key) -> bool:
        """Increase the count of a recorded event; False if it is gone."""

        def count(event: JsonObject) -> JsonObject:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = format_time(self._now())
            return event

        with ignoring(404):
            self._registry.modify("Event", key[1], key[0], change=count)
            return True
        return False

    def _create(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> Key | None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        at = format_time(self._now())
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{self._next_name():016x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        try:
            made = self._registry.create("Event", event)
        except StatusError:  # the namespace is terminating
            return None
        return namespace, made["metadata"]["name"]


_NO_OBJECTS: Final[dict[Key, JsonObject]] = {}


def deep_copy(item: JsonObject) -> JsonObject:
    """A copy of an object that may be changed."""
    made: JsonObject = msgspec.json.decode(msgspec.json.encode(item))
    return made


class Cluster:
    """What all controllers share: the cache, the registry, the clock, the queue and the events."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        """Read and write through *registry*; the time is that of *clock*."""
        self.registry = registry
        self.now = clock.now
        self.queue = WorkQueue(clock.now)
        self.pods = LabPods()
        self.events = ControllerEvents(registry, clock.now)
        self._objects: dict[str, dict[Key, JsonObject]] = {}
        self._by_namespace: dict[tuple[str, str], dict[Key, JsonObject]] = {}

    def timestamp(self) -> str:
        """The present time as objects carry it."""
        return format_time(self.now())

    # Reading
    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """An object, if it exists; pods and custom objects are decoded from the store.

        The *kind* of a custom object is the qualified name of its resource.
        """
        if kind == "Pod" or "." in kind:
            return self.registry.find(kind, name, namespace)
        return self._objects.get(kind, _NO_OBJECTS).get((namespace, name))

    def list(self, kind: str) -> Collection[JsonObject]:
        """All objects of a kind; pods are in `pods`."""
        return self._objects.get(kind, _NO_OBJECTS).values()

    def list_in_namespace(self, kind: str, namespace: str) -> Collection[JsonObject]:
        """The objects of a kind in one namespace; pods are in `pods`."""
        return self._by_namespace.get((kind, namespace), _NO_OBJECTS).values()

    def observe(self, kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        """Update the cache after a write; *old* or *new* is None for an object that is absent."""
        if new is not None:
            key = key_of(new)
            self._objects.setdefault(kind, {})[key] = new
            self._by_namespace.setdefault((kind, key[0]), {})[key] = new
        elif old is not None:
            key = key_of(old)
            self._objects.get(kind, {}).pop(key, None)
            self._by_namespace.get((kind, key[0]), {}).pop(key, None)

    # Writing
    def create(self, kind: str, item: JsonObject) -> JsonObject:
        """Create an object; *item* itself is not changed."""
        return self.registry.create(kind, deep_copy(item))

    def update(
        self, kind: str, key: Key, edit: Callable[[JsonObject], None], subresource: str = ""
    ) -> JsonObject | None:
        """Let *edit* change a copy of the object and store it; None if the object is gone."""

        def edited(item: JsonObject) -> JsonObject:
            edit(item)
            return item

        with ignoring(404):
            return self.registry.modify(
                kind, key[1], key[0], change=edited, subresource=subresource
            )
        return None

    def update_status(self, item: JsonObject, status: JsonObject) -> None:
        """Store a new status of an object, unless it is equal to the present one."""
        if status == (item.get("status") or {}):
            return

        def edit(found: JsonObject) -> None:
            found["status"] = deep_copy(status)

        self.update(item["kind"], key_of(item), edit, "status")

    def remove_finalizer(self, kind: str, key: Key, finalizer: str) -> None:
        """Remove a finalizer from the metadata of an object."""
        self.update(kind, key, lambda found: remove_finalizer(found["metadata"], finalizer))

    def delete(self, item: JsonObject, *, propagation: str = "Background", kind: str = "") -> None:
        """Delete an object, unless another one has taken its name; *kind* is that of `get`."""
        options = DeleteOptions(uid=uid_of(item), propagation=propagation)
        self._delete(kind or item["kind"], key_of(item), options)

    def delete_pod(self, pod: PodInfo, *, grace: int | None = None) -> None:
        """Delete a pod, unless another one has taken its name; *grace* 0 removes it at once."""
        self._delete("Pod", pod.key, DeleteOptions(uid=pod.uid, grace=grace))

    def _delete(self, kind: str, key: Key, options: DeleteOptions) -> None:
        with ignoring(404, 409):
            self.registry.delete(kind, key[1], key[0], options)
