"""The base classes of controllers, and what controllers of pods share.

A controller watches some kinds of objects. A change of one enqueues keys; later `sync` is called
with each key and brings the cluster closer to what the spec of the object asks for. A key that was
enqueued too often does no harm: `sync` only looks at the present state.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    key_of,
    remove_owner,
    uid_of,
)
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.lab.registry.metadata import NAME_LETTERS
from podium.lab.store.selection import compile_selector
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector

#: Objects that one sync creates or deletes; the others follow in the next one.
BURST: Final = 100
#: Seconds until a pod that was refused is tried again.
FAILED_CREATE_SECONDS: Final = 1.0
#: Called with an object before and after a write; None where it did not exist.
Handler = Callable[[JsonObject | None, JsonObject | None], None]
#: The same for pods, which are not decoded as a whole.
PodHandler = Callable[[PodInfo | None, PodInfo | None], None]
#: Called once, with all pods that exist when the controllers start.
ListedPodsHandler = Callable[[LabPods], None]
#: The same for custom objects, with the qualified name of their resource.
CustomHandler = Callable[[str, JsonObject | None, JsonObject | None], None]
KeyT = TypeVar("KeyT", bound=Hashable)
T = TypeVar("T")


class Controller(Generic[KeyT]):
    """Watches objects and syncs the keys that their changes enqueue."""

    #: The component that events of this controller name.
    name: ClassVar[str]

    def __init__(self, cluster: Cluster) -> None:
        """Read from and write to *cluster*; subclasses call `watch` for each kind they need."""
        self.cluster = cluster
        #: Handlers of changes by kind.
        self.handlers: dict[str, Handler] = {}
        self.pod_handler: PodHandler | None = None
        self.listed_pods_handler: ListedPodsHandler | None = None
        self.custom_handler: CustomHandler | None = None

    def watch(self, kind: str, handler: Handler) -> None:
        """Have *handler* called for every change of an object of this kind."""
        self.handlers[kind] = handler

    def watch_pods(self, handler: PodHandler | None, *, listed: ListedPodsHandler) -> None:
        """Have *handler* called for every change of a pod; None if `watch` does that.

        *listed* is called once instead, for the pods that exist when the controllers start. It has
        nothing to do (`no_listed_pods`) where the owners of pods enqueue themselves.
        """
        self.pod_handler = handler
        self.listed_pods_handler = listed

    def watch_custom(self, handler: CustomHandler) -> None:
        """Have *handler* called for every change of a custom object."""
        self.custom_handler = handler

    def enqueue(self, key: KeyT, after: float = 0.0, *, clock: bool = False) -> None:
        """Sync *key* as soon as possible, or in so many seconds.

        With *clock* the delay follows from the time of day, not from a change of the cluster.
        """
        if after > 0:
            self.cluster.queue.add_after((self, key), after, clock=clock)
        else:
            self.cluster.queue.add((self, key))

    def sync(self, key: KeyT) -> None:
        """Compare the spec behind *key* with the cluster and take the next step towards it."""
        raise NotImplementedError

    def record(self, about: JsonObject, reason: str, message: str) -> None:
        """Record an event of type Normal."""
        self.cluster.events.record(about, "Normal", reason, message, self.name)

    def warn(self, about: JsonObject, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        self.cluster.events.record(about, "Warning", reason, message, self.name)


def no_listed_pods(_: LabPods) -> None:
    """Do nothing for the pods that exist when the controllers start."""


def changed(old: T | None, new: T | None) -> T:
    """The object that a handler was called with: its present state, or its last one."""
    found = new if new is not None else old
    assert found is not None
    return found


def changed_key(old: JsonObject | None, new: JsonObject | None) -> Key:
    """The key of the object that a handler was called with."""
    return key_of(changed(old, new))


class PodSelectingController(Controller[Key]):
    """Enqueues an object when it changes, and when a pod that it selects changes."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        """Watch the objects of one kind, and pods."""
        super().__init__(cluster)
        self._selectors: dict[str, dict[Key, Selector]] = {}
        self.watch(kind, self._on_object)
        self.watch_pods(self._on_pod, listed=no_listed_pods)

    def selector_of(self, item: JsonObject) -> Selector:
        """The selector of an object."""
        raise NotImplementedError

    def is_relevant(self, old: PodInfo, new: PodInfo) -> bool:
        """Whether the change of a pod can change the result of a sync."""
        raise NotImplementedError

    def selected_pods(self, item: JsonObject) -> Iterator[PodInfo]:
        """The pods that an object selects."""
        selector = self.selector_of(item)
        matches: dict[int, bool] = {}
        for pod in self.cluster.pods.in_namespace(item["metadata"]["namespace"]).values():
            which = id(pod.labels)  # pods with equal labels share one dictionary
            found = matches.get(which)
            if found is None:
                found = matches[which] = selector.matches(pod.labels)
            if found:
                yield pod

    def _on_object(self, old: JsonObject | None, new: JsonObject | None) -> None:
        key = changed_key(old, new)
        selectors = self._selectors.setdefault(key[0], {})
        selectors.pop(key, None)
        if new is not None:
            selectors[key] = self.selector_of(new)
        elif not selectors:
            del self._selectors[key[0]]
        self.enqueue(key)

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        pod = changed(old, new)
        selectors = self._selectors.get(pod.key[0])
        if not selectors:
            return
        if old is not None and new is not None and not self.is_relevant(old, new):
            return
        for key, selector in selectors.items():
            if selector.matches(pod.labels) or (old is not None and selector.matches(old.labels)):
                self.enqueue(key)


def controller_ref(owner: JsonObject) -> JsonObject:
    """The owner reference that makes *owner* the managing controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt(item: JsonObject, owner: JsonObject) -> None:
    """Add the controller reference of *owner* to an object."""
    metadata = item["metadata"]
    metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), controller_ref(owner)]


def pod_from_template(template: JsonObject, owner: JsonObject) -> JsonObject:
    """A pod managed by *owner*; the API server generates its name."""
    written = template.get("metadata") or {}
    metadata: JsonObject = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(written.get("labels") or {}),
        "ownerReferences": [controller_ref(owner)],
    }
    for part in ("annotations", "finalizers"):
        if written.get(part):
            metadata[part] = written[part]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def template_hash(value: Any, length: int = 10) -> str:
    """A hash of a JSON value that can stand in a name; the order of keys does not matter."""
    data = hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()
    number = int.from_bytes(data)
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(NAME_LETTERS))
        letters.append(NAME_LETTERS[letter])
    return "".join(letters)


class PodOwningController(Controller[KeyT]):
    """Enqueues an owner of pods with each change of it, of its pods, and of pods it may adopt."""

    #: The kind of the owners.
    kind: ClassVar[str]

    def __init__(self, cluster: Cluster) -> None:
        """Watch the objects of `kind`, and pods."""
        super().__init__(cluster)
        #: Owned pods whose labels changed since the last sync, by owner.
        self._relabelled: dict[Key, dict[Key, None]] = {}
        self.watch(self.kind, lambda old, new: self.enqueue_owner(changed_key(old, new)))
        self.watch_pods(self.on_pod, listed=self.on_listed_pods)

    def enqueue_owner(self, key: Key) -> None:
        """Sync the owner of this key as soon as possible."""
        self.cluster.queue.add((self, key))

    def selector_of(self, owner: JsonObject) -> Selector:
        """The `spec.selector` of an owner."""
        return compile_selector(owner["spec"].get("selector"))

    def may_adopt(self, owner: JsonObject, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether a pod that the selector matches can become one of the owner's."""
        return True

    def on_listed_pods(self, pods: LabPods) -> None:
        """Look at the pods that exist when the controllers start; owners enqueue themselves."""

    def on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        """Enqueue the owners of a pod before and after a change, or those that may adopt it."""
        pod = changed(old, new)
        relabelled = old is not None and new is not None and old.labels is not new.labels
        for each in (old, new) if old is None or old.owner != pod.owner else (pod,):
            if each is not None and each.owner is not None and each.owner[0] == self.kind:
                key = (pod.key[0], each.owner[1])
                if relabelled:
                    self._relabelled.setdefault(key, {})[pod.key] = None
                self.enqueue_owner(key)
        is_orphan = pod.owner is None and new is not None
        if is_orphan and (old is None or relabelled or old.owner is not None):
            for owner in self.cluster.list_in_namespace(self.kind, pod.key[0]):
                if self.selector_of(owner).matches(pod.labels):
                    self.enqueue_owner(key_of(owner))

    def owner_with_pods(self, key: Key) -> JsonObject | None:
        """The owner of a key, `None` if it is gone.

        It has released the pods that its selector no longer matches, and adopted matching orphans.
        """
        owner = self.cluster.get(self.kind, *key)
        relabelled = self._relabelled.pop(key, {})
        if owner is None or is_terminating(owner):
            return owner
        uid, selector = uid_of(owner), self.selector_of(owner)
        owned = self.cluster.pods.of_owner(uid).pods
        for each in relabelled:
            pod = owned.get(each)
            if pod is not None and not pod.terminating and not selector.matches(pod.labels):
                self.cluster.update("Pod", each, lambda found: remove_owner(found, uid))
        for orphan in list(self.cluster.pods.orphans_in(owner["metadata"]["namespace"]).values()):
            if orphan.active and self.may_adopt(owner, orphan) and selector.matches(orphan.labels):
                self.cluster.update("Pod", orphan.key, lambda found: adopt(found, owner))
        return owner

    def create_pod(self, owner: JsonObject, pod: JsonObject) -> JsonObject:
        """Create a pod of an owner, and record that."""
        made = self.cluster.create("Pod", pod)
        self.record(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made
