"""The objects besides nodes and pods that rules look things up in.

Kept by kind and namespace. Every change raises a version number, so whatever was derived from
the catalog (a pod's selectors, say) knows when to be derived again.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from podium.engine.state.selector_index import ByAnchor, anchor
from podium.objects.kinds.meta import Object
from podium.objects.selectors.selectors import (
    Selector,
    SelectorError,
    from_label_selector,
    from_map_literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from podium.objects.kinds.storage import (
        CsiDriver,
        CsiNode,
        CsiStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        VolumeAttachment,
    )
    from podium.objects.kinds.workloads import (
        Namespace,
        PodDisruptionBudget,
        ReplicaSet,
        ReplicationController,
        Service,
        StatefulSet,
    )

T = TypeVar("T", bound=Object)
#: Beyond this many changes of a kind the older half is forgotten; who is behind starts afresh.
CHANGES_LIMIT = 1 << 14


class Shelf(Generic[T]):
    """Objects of one kind, in order of arrival."""

    __slots__ = ("_by_namespace", "_changes", "version")

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, T]] = defaultdict(dict)
        self.version = 0
        #: Namespace and name of what changed lately, the latest last.
        self._changes: list[tuple[str, str]] = []

    def put(self, item: T) -> None:
        """Add or replace an object."""
        self._by_namespace[item.namespace][item.name] = item
        self._note(item.namespace, item.name)

    def drop(self, item: T) -> None:
        """Forget an object."""
        if self._by_namespace[item.namespace].pop(item.name, None) is not None:
            self._note(item.namespace, item.name)

    def _note(self, namespace: str, name: str) -> None:
        self.version += 1
        self._changes.append((namespace, name))
        if len(self._changes) > CHANGES_LIMIT:
            del self._changes[: CHANGES_LIMIT // 2]

    def changes_since(self, version: int) -> list[tuple[str, str]] | None:
        """Namespace and name of what changed since; None when that is not known any more."""
        count = self.version - version
        if count > len(self._changes):
            return None
        return self._changes[-count:] if count else []

    def get(self, name: str, namespace: str = "default") -> T | None:
        """The object of that name, if it exists. Cluster-wide kinds live in `default`."""
        return self._by_namespace[namespace].get(name)

    def within(self, namespace: str) -> Iterable[T]:
        """All objects of a namespace."""
        return self._by_namespace[namespace].values()

    def __iter__(self) -> Iterator[T]:
        for items in self._by_namespace.values():
            yield from items.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))


#: What an object selects, as it was written.
_written_selector = attrgetter("spec.selector")


class _Found(ByAnchor[tuple[str, "Selector"]]):
    """Names and selectors of one namespace."""

    __slots__ = ("invalid",)

    def __init__(self) -> None:
        super().__init__()
        #: Whether one of the selectors cannot be compiled.
        self.invalid = False


class Selecting(Shelf[T]):
    """Objects that select pods, found by the labels of these.

    Only a change of what is selected counts as one: controllers write into their objects whenever
    one of their pods does anything.
    """

    __slots__ = ("_compile", "_found")

    def __init__(self, compile_selector: Callable[[T], Selector | None]) -> None:
        """*compile_selector* makes nothing of an object that is to be left out."""
        super().__init__()
        self._compile = compile_selector
        #: By namespace, as far as somebody asked.
        self._found: dict[str, _Found] = {}

    def put(self, item: T) -> None:
        """As for any object."""
        before = self.get(item.name, item.namespace)
        if before is None:
            super().put(item)
            if item.namespace in self._found:
                self._find(self._found[item.namespace], item)
        elif _written_selector(before) == _written_selector(item):
            self._by_namespace[item.namespace][item.name] = item
        else:
            super().put(item)
            self._found.pop(item.namespace, None)

    def drop(self, item: T) -> None:
        """As for any object."""
        super().drop(item)
        self._found.pop(item.namespace, None)

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[tuple[T, Selector]]:
        """Those that select pods with these labels; none if a selector there is invalid."""
        found = self._found.get(namespace)
        if found is None:
            found = self._found[namespace] = _Found()
            for item in self.within(namespace):
                self._find(found, item)
        if found.invalid:
            return []
        items = self._by_namespace[namespace]
        likely = found.likely(labels)
        return [(items[name], selector) for name, selector in likely if selector.matches(labels)]

    def _find(self, found: _Found, item: T) -> None:
        try:
            selector = self._compile(item)
        except SelectorError:
            found.invalid = True
            return
        if selector is not None:
            found.add((item.name, selector), anchor(selector))


def _by_map(item: Service | ReplicationController) -> Selector | None:
    return None if item.spec.selector is None else from_map_literal(item.spec.selector)


def _by_labels(item: ReplicaSet | StatefulSet) -> Selector:
    return from_label_selector(item.spec.selector)


CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class Volumes(Shelf["PersistentVolume"]):
    """Persistent volumes, also by the storage class they name."""

    __slots__ = ("_by_class",)

    def __init__(self) -> None:
        super().__init__()
        self._by_class: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)

    def put(self, item: PersistentVolume) -> None:
        """As for any object."""
        names = _class_names(item)
        before = self.get(item.name, item.namespace)
        for name in _class_names(before) - names if before is not None else ():
            del self._by_class[name][item.name]
        for name in names:
            self._by_class[name][item.name] = item
        super().put(item)

    def drop(self, item: PersistentVolume) -> None:
        """As for any object."""
        before = self.get(item.name, item.namespace)
        for name in _class_names(before) if before is not None else ():
            del self._by_class[name][item.name]
        super().drop(item)

    def naming(self, classes: Iterable[str]) -> Iterable[PersistentVolume]:
        """Those that name one of these classes, by the old annotation or in the specification."""
        found: dict[str, PersistentVolume] = {}
        for name in sorted(classes):
            found |= self._by_class.get(name, {})
        return found.values()


def _class_names(volume: PersistentVolume) -> set[str]:
    annotations = volume.metadata.annotations or {}
    return {volume.spec.storage_class_name or "", annotations.get(CLASS_ANNOTATION, "")}


class Attachments(Shelf["VolumeAttachment"]):
    """Volume attachments, also by the node they are about."""

    __slots__ = ("_by_node",)
    #: In place of a namespace: the attachments of a node changed.
    BY_NODE = "by node"

    def __init__(self) -> None:
        super().__init__()
        self._by_node: dict[str, dict[str, VolumeAttachment]] = defaultdict(dict)

    def put(self, item: VolumeAttachment) -> None:
        """As for any object."""
        self._leave(self.get(item.name, item.namespace))
        self._by_node[item.spec.node_name][item.name] = item
        self._note(self.BY_NODE, item.spec.node_name)
        super().put(item)

    def drop(self, item: VolumeAttachment) -> None:
        """As for any object."""
        self._leave(self.get(item.name, item.namespace))
        super().drop(item)

    def _leave(self, item: VolumeAttachment | None) -> None:
        if item is not None:
            del self._by_node[item.spec.node_name][item.name]
            self._note(self.BY_NODE, item.spec.node_name)

    def to_node(self, name: str) -> Iterable[VolumeAttachment]:
        """The attachments of one node."""
        return self._by_node[name].values() if name in self._by_node else ()


class Catalog:
    """Services, controllers, storage and budgets of the cluster."""

    def __init__(self) -> None:
        self.services: Selecting[Service] = Selecting(_by_map)
        self.replication_controllers: Selecting[ReplicationController] = Selecting(_by_map)
        self.replica_sets: Selecting[ReplicaSet] = Selecting(_by_labels)
        self.stateful_sets: Selecting[StatefulSet] = Selecting(_by_labels)
        self.namespaces: Shelf[Namespace] = Shelf()
        self.volumes = Volumes()
        self.claims: Shelf[PersistentVolumeClaim] = Shelf()
        self.storage_classes: Shelf[StorageClass] = Shelf()
        self.budgets: Shelf[PodDisruptionBudget] = Shelf()
        self.csi_nodes: Shelf[CsiNode] = Shelf()
        self.csi_drivers: Shelf[CsiDriver] = Shelf()
        self.csi_capacities: Shelf[CsiStorageCapacity] = Shelf()
        self.attachments = Attachments()
        #: Volumes promised to a claim by a placed pod, before the claim is bound: name -> claim.
        self.promised_volumes: dict[str, PersistentVolumeClaim] = {}
        #: Claims whose volume will be made on a node: claim key -> node name.
        self.provisioning: dict[str, str] = {}

    def selection_version(self) -> tuple[int, int, int, int]:
        """Changes whenever the selectors that cover a pod may have changed."""
        return (
            self.services.version,
            self.replication_controllers.version,
            self.replica_sets.version,
            self.stateful_sets.version,
        )
