"""The base classes of controllers, and what controllers of pods share.

A controller watches some kinds of objects. A change of one enqueues keys; later `sync` is called
with each key and brings the cluster closer to what the spec of the object asks for. A key that was
enqueued too often does no harm: `sync` only looks at the present state.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

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
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import NOTHING, Selector, SelectorError, from_label_selector

#: Called with an object before and after a write; None where it did not exist.
Handler = Callable[[JsonObject | None, JsonObject | None], None]
#: The same for pods, which are not decoded as a whole.
PodHandler = Callable[[PodInfo | None, PodInfo | None], None]
#: Called once, with all pods that exist when the controllers start.
ListedPodsHandler = Callable[[LabPods], None]
#: The same for custom objects, with the qualified name of their resource.
CustomHandler = Callable[[str, JsonObject | None, JsonObject | None], None]
KeyT = TypeVar("KeyT", bound=Hashable)


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


def no_listed_pods(_: LabPods) -> None:
    """Do nothing for the pods that exist when the controllers start."""


def changed_key(old: JsonObject | None, new: JsonObject | None) -> tuple[str, str]:
    """The key of the object that a handler was called with."""
    item = new if new is not None else old
    assert item is not None
    return key_of(item)


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
        pod = new or old
        assert pod is not None
        selectors = self._selectors.get(pod.key[0])
        if not selectors:
            return
        if old is not None and new is not None and not self.is_relevant(old, new):
            return
        for key, selector in selectors.items():
            if selector.matches(pod.labels) or (old is not None and selector.matches(old.labels)):
                self.enqueue(key)


def compile_selector(written: Any) -> Selector:
    """The selector of a `LabelSelector` field; absent and invalid ones select nothing."""
    return NOTHING if written is None else _compile(msgspec.json.encode(written))


@lru_cache(maxsize=1 << 12)
def _compile(text: bytes) -> Selector:
    try:
        return from_label_selector(msgspec.json.decode(text, type=LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING


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


def claim_pods(
    cluster: Cluster,
    owner: JsonObject,
    selector: Selector,
    relabelled: Iterable[Key],
    *,
    may_own: Callable[[PodInfo], bool] = lambda _: True,
) -> None:
    """Release owned pods that *selector* no longer matches, and adopt matching orphans.

    *relabelled* are the keys of pods whose labels changed since the last sync; *may_own* says which
    orphans can be adopted at all.
    """
    if is_terminating(owner):
        return
    uid = uid_of(owner)
    owned = cluster.pods.of_owner(uid).pods
    for key in relabelled:
        pod = owned.get(key)
        if pod is not None and not pod.terminating and not selector.matches(pod.labels):
            cluster.update("Pod", key, lambda found: remove_owner(found, uid))
    for orphan in list(cluster.pods.orphans_in(owner["metadata"]["namespace"]).values()):
        if orphan.active and may_own(orphan) and selector.matches(orphan.labels):
            cluster.update("Pod", orphan.key, lambda found: adopt(found, owner))


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
