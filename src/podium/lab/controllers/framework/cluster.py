"""The cluster as controllers read and write it: a cache of all objects, and writes to the registry.

Cached objects are shared and must not be changed in place. Every write updates the cache before it
returns, so a controller always reads its own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError
from podium.lab.api.timestamps import format_time
from podium.lab.controllers.framework.clock import Clock
from podium.lab.controllers.framework.events import ControllerEvents
from podium.lab.controllers.framework.object_fields import Key, key_of, uid_of
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.lab.controllers.framework.work_queue import WorkQueue
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

_NO_OBJECTS: Final[dict[Key, JsonObject]] = {}
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


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

        try:
            return self.registry.modify(
                kind, key[1], key[0], change=edited, subresource=subresource
            )
        except StatusError as error:
            if error.code != _NOT_FOUND:
                raise
            return None

    def update_status(self, item: JsonObject, status: JsonObject) -> None:
        """Store a new status of an object, unless it is equal to the present one."""
        if status == (item.get("status") or {}):
            return

        def edit(found: JsonObject) -> None:
            found["status"] = deep_copy(status)

        self.update(item["kind"], key_of(item), edit, "status")

    def delete(self, item: JsonObject, *, propagation: str = "Background", kind: str = "") -> None:
        """Delete an object, unless another one has taken its name; *kind* is that of `get`."""
        options = DeleteOptions(uid=uid_of(item), propagation=propagation)
        self._delete(kind or item["kind"], key_of(item), options)

    def delete_pod(self, pod: PodInfo, *, grace: int | None = None) -> None:
        """Delete a pod, unless another one has taken its name; *grace* 0 removes it at once."""
        self._delete("Pod", pod.key, DeleteOptions(uid=pod.uid, grace=grace))

    def _delete(self, kind: str, key: Key, options: DeleteOptions) -> None:
        try:
            self.registry.delete(kind, key[1], key[0], options)
        except StatusError as error:
            if error.code not in {_NOT_FOUND, _CONFLICT}:
                raise
