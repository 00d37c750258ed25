"""What controllers see of the cluster, and the verbs by which they change it.

Objects that are read here are shared: nobody changes them in place. Every write is announced
before it returns, so what is read afterwards is never older than what was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

import msgspec

from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.events import Events
from podium.lab.controllers.framework.object_fields import key_of, timestamp, uid_of
from podium.lab.controllers.framework.pod_index import PodIndex
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.lab.controllers.framework.work_queue import WorkQueue
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_NOTHING: Final[dict[Key, JsonObject]] = {}
_GONE: Final = 404


def copied(item: JsonObject) -> JsonObject:
    """A copy that may be changed."""
    made: JsonObject = msgspec.json.decode(msgspec.json.encode(item))
    return made


class Cluster:
    """The registry, its objects at hand, the time and the work to be done."""

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        """Read and write through *registry*."""
        self.registry = registry
        self.now = now
        self.queue = WorkQueue(now)
        self.pods = PodIndex()
        self.events = Events(self)
        self._items: dict[str, dict[Key, JsonObject]] = {}
        self._homes: dict[tuple[str, str], dict[Key, JsonObject]] = {}

    def timestamp(self, ahead: float = 0.0) -> str:
        """The time as objects write it."""
        return timestamp(self.now() + ahead)

    # Reading
    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """An object, if it exists; pods are read afresh."""
        if kind == "Pod":
            return self.registry.find("Pod", name, namespace)
        return self._items.get(kind, _NOTHING).get((namespace, name))

    def all(self, kind: str) -> Collection[JsonObject]:
        """All objects of a kind that is not pods."""
        return self._items.get(kind, _NOTHING).values()

    def within(self, kind: str, namespace: str) -> Collection[JsonObject]:
        """The objects of a kind in a namespace."""
        return self._homes.get((kind, namespace), _NOTHING).values()

    def seen(self, kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        """An object that is not a pod came, changed or went."""
        if new is not None:
            key = key_of(new)
            self._items.setdefault(kind, {})[key] = new
            self._homes.setdefault((kind, key[0]), {})[key] = new
        elif old is not None:
            key = key_of(old)
            self._items.get(kind, {}).pop(key, None)
            self._homes.get((kind, key[0]), {}).pop(key, None)

    # Writing
    def create(self, kind: str, item: JsonObject) -> JsonObject:
        """Make a new object."""
        return self.registry.create(kind, copied(item))

    def change(
        self, kind: str, key: Key, edit: Callable[[JsonObject], None], subresource: str = ""
    ) -> JsonObject | None:
        """Let *edit* change an object in place and store it; None if it is gone."""

        def edited(item: JsonObject) -> JsonObject:
            edit(item)
            return item

        try:
            return self.registry.modify(
                kind, key[1], key[0], change=edited, subresource=subresource
            )
        except StatusError as error:
            if error.code != _GONE:
                raise
            return None

    def report(self, item: JsonObject, status: JsonObject) -> None:
        """Write down the status of an object, if it is another than before."""
        if status == (item.get("status") or {}):
            return
        self.change(item["kind"], key_of(item), lambda found: _told(found, status), "status")

    def delete(self, item: JsonObject, *, propagation: str = "Background") -> None:
        """Delete an object, if it is still the same."""
        options = DeleteOptions(uid=uid_of(item), propagation=propagation)
        self._delete(item["kind"], key_of(item), options)

    def delete_pod(self, pod: PodFacts, *, grace: int | None = None) -> None:
        """Delete a pod, if it is still the same; *grace* 0 means that nobody waits for it."""
        self._delete("Pod", pod.key, DeleteOptions(uid=pod.uid, grace=grace))

    def _delete(self, kind: str, key: Key, options: DeleteOptions) -> None:
        try:
            self.registry.delete(kind, key[1], key[0], options)
        except StatusError as error:
            if error.code not in {_GONE, 409}:
                raise


def _told(found: JsonObject, status: JsonObject) -> None:
    found["status"] = copied(status)
