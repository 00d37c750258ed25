"""The objects besides nodes and pods that rules look things up in.

Kept by kind and namespace. Every change raises a version number, so whatever was derived from
the catalog (a pod's selectors, say) knows when to be derived again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

from podium.objects.meta import Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.objects.storage import (
        CsiDriver,
        CsiNode,
        CsiStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        VolumeAttachment,
    )
    from podium.objects.workloads import (
        Namespace,
        PodDisruptionBudget,
        ReplicaSet,
        ReplicationController,
        Service,
        StatefulSet,
    )

T = TypeVar("T", bound=Object)


class Shelf(Generic[T]):
    """Objects of one kind, in order of arrival."""

    __slots__ = ("_by_namespace", "version")

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, T]] = defaultdict(dict)
        self.version = 0

    def put(self, item: T) -> None:
        """Add or replace an object."""
        self._by_namespace[item.namespace][item.name] = item
        self.version += 1

    def drop(self, item: T) -> None:
        """Forget an object."""
        if self._by_namespace[item.namespace].pop(item.name, None) is not None:
            self.version += 1

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


class Catalog:
    """Services, controllers, storage and budgets of the cluster."""

    def __init__(self) -> None:
        self.services: Shelf[Service] = Shelf()
        self.replication_controllers: Shelf[ReplicationController] = Shelf()
        self.replica_sets: Shelf[ReplicaSet] = Shelf()
        self.stateful_sets: Shelf[StatefulSet] = Shelf()
        self.namespaces: Shelf[Namespace] = Shelf()
        self.volumes: Shelf[PersistentVolume] = Shelf()
        self.claims: Shelf[PersistentVolumeClaim] = Shelf()
        self.storage_classes: Shelf[StorageClass] = Shelf()
        self.budgets: Shelf[PodDisruptionBudget] = Shelf()
        self.csi_nodes: Shelf[CsiNode] = Shelf()
        self.csi_drivers: Shelf[CsiDriver] = Shelf()
        self.csi_capacities: Shelf[CsiStorageCapacity] = Shelf()
        self.attachments: Shelf[VolumeAttachment] = Shelf()
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
