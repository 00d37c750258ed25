"""Which events wake pods that VolumeBinding rejected.

Upstream: the queueing hints of volumebinding, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.engine.rules.volumes.v1_36_wakeups import volumes_of
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import CsiDriver, CsiNode, CsiStorageCapacity, StorageClass
from podium.objects.quantity import value

_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


def migration_changed(_waiting: Pod, old: CsiNode, new: CsiNode) -> bool:
    """Other in-tree plugins are served by CSI drivers now."""
    before, after = (node.metadata.annotations or {} for node in (old, new))
    return before.get(_MIGRATED_PLUGINS, "") != after.get(_MIGRATED_PLUGINS, "")


def topologies_changed(_waiting: Pod, old: StorageClass, new: StorageClass) -> bool:
    """Volumes of the class may be made elsewhere."""
    return (old.allowed_topologies or []) != (new.allowed_topologies or [])


def capacity_unchecked(waiting: Pod, old: CsiDriver, new: CsiDriver) -> bool:
    """A driver of an inline volume no longer reports its capacity.

    Volumes behind claims are not looked at, although they are what capacity matters to.
    """
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return stopped and any(each.csi and each.csi.driver == new.name for each in volumes_of(waiting))


def capacity_grew(_waiting: Pod, old: CsiStorageCapacity, new: CsiStorageCapacity) -> bool:
    """Larger volumes can be made than before."""
    before, after = _largest(old), _largest(new)
    return after is not None and (before is None or after > before)


def _largest(capacity: CsiStorageCapacity) -> int | None:
    raw = capacity.maximum_volume_size
    raw = capacity.capacity if raw is None else raw
    return None if raw is None else value(raw)
