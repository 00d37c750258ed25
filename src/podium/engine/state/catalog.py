"""The objects besides nodes and pods that rules look things up in.

There is one shelf per kind that `objects.kinds.registry` declares as looked up; a kind that selects
pods gets one that finds objects by the labels of a pod. Every change raises the version of its
shelf, so that what was derived from it (the selectors of a pod, for example) is derived again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from podium.engine.state.devices import DeviceClasses, ResourceClaims, ResourceSlices
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.selector_index import ByAnchor, anchor
from podium.engine.state.shelf import CHANGES_LIMIT, Shelf
from podium.objects.kinds import registry
from podium.objects.kinds.meta import Object
from podium.objects.selectors.selectors import Selector, SelectorError, from_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.devices import DeviceTaintRule
    from podium.objects.kinds.kind import Kind
    from podium.objects.kinds.pod_group import PodGroup
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
    from podium.objects.selectors.selectors import Selector

T = TypeVar("T", bound=Object)

#: What an object selects, as it was written.
_written_selector = attrgetter("spec.selector")


class _Found(ByAnchor[tuple[str, "Selector"]]):
    """Names and selectors of one namespace."""

    __slots__ = ("invalid",)

    def __init__(self) -> None:
        super().__init__()
        #: Whether one of the selectors cannot be compiled.
        self.invalid = False


class Selections:
    """Counts how often the selectors that cover a pod may have changed."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes = 0


class Selecting(Shelf[T]):
    """Objects that select pods, found by the labels of a pod.

    Only a changed selector raises the version: controllers update the status of their objects
    whenever one of their pods changes.
    """

    __slots__ = ("_compile", "_found", "_selections")

    def __init__(
        self,
        compile_selector: Callable[[T], Selector | None],
        selections: Selections,
        changes_limit: int = CHANGES_LIMIT,
    ) -> None:
        """*compile_selector* returns None for an object that selects no pods."""
        super().__init__(changes_limit)
        self._compile = compile_selector
        self._selections = selections
        #: By namespace, for the namespaces that were looked up.
        self._found: dict[str, _Found] = {}

    def _note(self, namespace: str, name: str) -> None:
        super()._note(namespace, name)
        self._selections.changes += 1

    def put(self, item: T) -> None:
        """Add or replace an object; one with the selector that it had is no change."""
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
        """Remove an object and what it selects."""
        super().drop(item)
        self._found.pop(item.namespace, None)

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[tuple[T, Selector]]:
        """Those that select pods with these labels; none if a selector there is invalid."""
        found = self._found.get(namespace)
        if found is None:
            found = self._found[namespace] = _Found()
            for item in self.within(namespace):
                self._find(found, item)
        if found.invalid or not len(found):
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


CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class Volumes(Shelf["PersistentVolume"]):
    """Persistent volumes, also by the storage class they name."""

    __slots__ = ("_by_class",)

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        super().__init__(changes_limit)
        self._by_class: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)

    def put(self, item: PersistentVolume) -> None:
        """Add or replace a volume, under the classes that it names now."""
        names = _class_names(item)
        before = self.get(item.name, item.namespace)
        for name in _class_names(before) - names if before is not None else ():
            del self._by_class[name][item.name]
        for name in names:
            self._by_class[name][item.name] = item
        super().put(item)

    def drop(self, item: PersistentVolume) -> None:
        """Remove a volume from its classes, too."""
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

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        super().__init__(changes_limit)
        self._by_node: dict[str, dict[str, VolumeAttachment]] = defaultdict(dict)

    def put(self, item: VolumeAttachment) -> None:
        """Add or replace an attachment, at the node that it names now."""
        self._leave(self.get(item.name, item.namespace))
        self._by_node[item.spec.node_name][item.name] = item
        self._note(self.BY_NODE, item.spec.node_name)
        super().put(item)

    def drop(self, item: VolumeAttachment) -> None:
        """Remove an attachment from its node, too."""
        self._leave(self.get(item.name, item.namespace))
        super().drop(item)

    def _leave(self, item: VolumeAttachment | None) -> None:
        if item is not None:
            del self._by_node[item.spec.node_name][item.name]
            self._note(self.BY_NODE, item.spec.node_name)

    def to_node(self, name: str) -> Iterable[VolumeAttachment]:
        """The attachments of one node."""
        return self._by_node[name].values() if name in self._by_node else ()


#: Kinds whose objects rules also find by something else than their name.
_INDEXED: Final[Mapping[str, Callable[[int], Shelf[Any]]]] = {
    registry.PERSISTENT_VOLUME.name: Volumes,
    registry.VOLUME_ATTACHMENT.name: Attachments,
    registry.RESOURCE_CLAIM.name: ResourceClaims,
    registry.RESOURCE_SLICE.name: ResourceSlices,
    registry.DEVICE_CLASS.name: DeviceClasses,
}


def _new_shelf(kind: Kind[Any], selections: Selections, changes_limit: int) -> Shelf[Any]:
    if kind.pod_selector is not None:
        return Selecting(kind.pod_selector, selections, changes_limit)
    return _INDEXED.get(kind.name, Shelf)(changes_limit)


class Catalog:
    """Services, controllers, storage and budgets of the cluster, one shelf per kind."""

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        """Every shelf keeps its latest changes, up to *changes_limit*."""
        self._shelves: dict[str, Any] = {}
        self.selections = Selections()
        for kind in registry.KINDS.values():
            if kind.looked_up:
                self._shelves[kind.name] = _new_shelf(kind, self.selections, changes_limit)
        # The shelves that built-in rules read, by names of their own.
        self.services: Selecting[Service] = self._shelves["Service"]
        self.replication_controllers: Selecting[ReplicationController] = self._shelves[
            "ReplicationController"
        ]
        self.replica_sets: Selecting[ReplicaSet] = self._shelves["ReplicaSet"]
        self.stateful_sets: Selecting[StatefulSet] = self._shelves["StatefulSet"]
        self.namespaces: Shelf[Namespace] = self._shelves["Namespace"]
        self.volumes: Volumes = self._shelves["PersistentVolume"]
        self.claims: Shelf[PersistentVolumeClaim] = self._shelves["PersistentVolumeClaim"]
        self.storage_classes: Shelf[StorageClass] = self._shelves["StorageClass"]
        self.budgets: Shelf[PodDisruptionBudget] = self._shelves["PodDisruptionBudget"]
        self.csi_nodes: Shelf[CsiNode] = self._shelves["CSINode"]
        self.csi_drivers: Shelf[CsiDriver] = self._shelves["CSIDriver"]
        self.csi_capacities: Shelf[CsiStorageCapacity] = self._shelves["CSIStorageCapacity"]
        self.attachments: Attachments = self._shelves["VolumeAttachment"]
        self.resource_claims: ResourceClaims = self._shelves["ResourceClaim"]
        self.resource_slices: ResourceSlices = self._shelves["ResourceSlice"]
        self.device_classes: DeviceClasses = self._shelves["DeviceClass"]
        self.pod_groups: Shelf[PodGroup] = self._shelves["PodGroup"]
        self.device_taint_rules: Shelf[DeviceTaintRule] = self._shelves["DeviceTaintRule"]
        #: Volumes promised to a claim by a placed pod, before the claim is bound: name -> claim.
        self.promised_volumes: dict[str, PersistentVolumeClaim] = {}
        #: Claims whose volume will be made on a node: claim key -> node name.
        self.provisioning: dict[str, str] = {}
        #: How many assumed pods each of them was promised to.
        self._promises: Counter[str] = Counter()

    def promise_volume(self, volume: str, claim: PersistentVolumeClaim | None) -> None:
        """A pod is assumed whose claim gets the volume; a claim that is gone gets none."""
        if claim is not None:
            self.promised_volumes[volume] = claim
        self._promises[volume] += 1

    def promise_provisioning(self, claim: str, node: str) -> None:
        """A pod is assumed for whose claim (namespace/name) a volume is made on the node."""
        self.provisioning[claim] = node
        self._promises[claim] += 1

    def withdraw_promise(self, name: str) -> None:
        """One pod less is assumed with this volume or claim."""
        self._promises[name] -= 1
        if self._promises[name] <= 0:
            self.end_promise(name)

    def end_promise(self, name: str) -> None:
        """The API server has the volume or claim as promised, or no assumed pod is left."""
        self._promises.pop(name, None)
        self.promised_volumes.pop(name, None)
        self.provisioning.pop(name, None)

    def shelf(self, kind: str) -> Shelf[Any]:
        """The objects of one kind that rules may look up."""
        found: Shelf[Any] = self._shelves[kind]
        return found

    def shelves(self) -> Iterable[tuple[str, Shelf[Any]]]:
        """Every kind that rules may look up, and its objects."""
        return self._shelves.items()

    def claim_changes(self) -> int:
        """How often a claim, a volume or a storage class changed."""
        return self.claims.version + self.volumes.version + self.storage_classes.version


def services_of(cls: PodClass, catalog: Catalog) -> list[Service]:
    """The services that select the pod; one without a selector is ignored."""
    return [found for found, _ in catalog.services.selecting(cls.namespace, cls.labels.labels)]


#: Kept while no service and no controller changes.
_KEPT: KeptPerClass[tuple[Selector, ...]] = KeptPerClass()


def selectors_of(cls: PodClass, catalog: Catalog) -> tuple[Selector, ...]:
    """Selectors of the services and controllers that select the pod, in that order."""
    return _KEPT.of(cls, catalog.selections.changes, lambda: tuple(_selectors(cls, catalog)))


def _selectors(cls: PodClass, catalog: Catalog) -> Iterator[Selector]:
    labels = cls.labels.labels
    for service in services_of(cls, catalog):
        yield from_map(service.spec.selector)
    if not labels:
        return
    for controller, _ in catalog.replication_controllers.selecting(cls.namespace, labels):
        if controller.spec.selector:
            yield from_map(controller.spec.selector)
    # One of them with an invalid selector, and none of them count.
    for shelf in (catalog.replica_sets, catalog.stateful_sets):
        found = shelf.selecting(cls.namespace, labels)
        yield from (selector for _, selector in found if not selector.empty)
