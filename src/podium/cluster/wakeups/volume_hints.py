"""What changes of volumes, claims and drivers mean to the plugins that look at storage.

Upstream: the queueing hints of volumerestrictions, nodevolumelimits, volumebinding and volumezone,
Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster.wakeups.node_hints import holds_place
from podium.engine.state.in_tree_volumes import SUCCESSORS, older_kind
from podium.objects.kinds.pod import GcePersistentDisk, IscsiVolume, Pod, RbdVolume, Volume
from podium.objects.kinds.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.objects.quantity import value

_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_TOPOLOGY_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


def _volumes(pod: Pod) -> list[Volume]:
    return pod.spec.volumes or []


def _claims(pod: Pod, *, ephemeral: bool) -> Iterator[str]:
    """The names of a pod's claims; *ephemeral*: those of generic ephemeral volumes, too."""
    for volume in _volumes(pod):
        if volume.persistent_volume_claim:
            yield volume.persistent_volume_claim.claim_name
        elif ephemeral and volume.ephemeral:
            yield f"{pod.name}-{volume.name}"


def claim_used(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod uses the claim, directly or through an ephemeral volume."""
    return new.namespace == waiting.namespace and new.name in _claims(waiting, ephemeral=True)


def claim_named(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod names the claim itself."""
    return new.namespace == waiting.namespace and new.name in _claims(waiting, ephemeral=False)


def frees_disks(waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod of the same namespace went that shared a disk or a claim with the waiting one."""
    if old.namespace != waiting.namespace:
        return False
    if any(_conflict(mine, other) for mine in _volumes(waiting) for other in _volumes(old)):
        return True
    shared = set(_claims(waiting, ephemeral=False)) & set(_claims(old, ephemeral=False))
    return bool(shared)


def _conflict(one: Volume, other: Volume) -> bool:
    """Whether both are one inline disk that is written; EBS disks cannot be shared at all."""
    gce, gce_too = one.gce_persistent_disk, other.gce_persistent_disk
    ebs, ebs_too = one.aws_elastic_block_store, other.aws_elastic_block_store
    iscsi, iscsi_too = one.iscsi, other.iscsi
    rbd, rbd_too = one.rbd, other.rbd
    return bool(
        (gce and gce_too and gce.pd_name == gce_too.pd_name and _writes(gce, gce_too))
        or (ebs and ebs_too and ebs.volume_id == ebs_too.volume_id)
        or (iscsi and iscsi_too and iscsi.iqn == iscsi_too.iqn and _writes(iscsi, iscsi_too))
        or (rbd and rbd_too and _same_image(rbd, rbd_too) and _writes(rbd, rbd_too))
    )


_Disk = GcePersistentDisk | IscsiVolume | RbdVolume


def _writes(one: _Disk, other: _Disk) -> bool:
    return not (one.read_only and other.read_only)


def _same_image(one: RbdVolume, other: RbdVolume) -> bool:
    monitors = set(one.monitors or ()) & set(other.monitors or ())
    return bool(monitors) and (one.pool, one.image) == (other.pool, other.image)


def _driver(volume: Volume) -> str:
    """The CSI driver that serves an inline disk of an older kind; empty for other volumes."""
    kind = older_kind(volume)
    return SUCCESSORS[kind].driver if kind else ""


def frees_attachments(_waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod with attached volumes went."""
    return holds_place(old) and any(
        volume.persistent_volume_claim or volume.ephemeral or _driver(volume)
        for volume in _volumes(old)
    )


def detached(waiting: Pod, old: VolumeAttachment, _new: None) -> bool:
    """A volume was detached, and the pod has a claim or a disk of the same driver."""
    drivers = {old.spec.attacher} - {""}
    return any(
        volume.persistent_volume_claim or _driver(volume) in drivers for volume in _volumes(waiting)
    )


def limit_grew(_waiting: Pod, old: CsiNode, new: CsiNode) -> bool:
    """A node takes more volumes of some driver."""
    before = _limits(old)
    return any(limit > before.get(name, 0) for name, limit in _limits(new).items())


def _limits(node: CsiNode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable and driver.allocatable.count) or 0
        for driver in node.spec.drivers or ()
    }


def migration_changed(_waiting: Pod, old: CsiNode, new: CsiNode) -> bool:
    """Other in-tree plugins are served by CSI drivers now."""
    before, after = (node.metadata.annotations or {} for node in (old, new))
    return before.get(_MIGRATED_PLUGINS, "") != after.get(_MIGRATED_PLUGINS, "")


def topologies_changed(_waiting: Pod, old: StorageClass, new: StorageClass) -> bool:
    """Volumes of the class may be made elsewhere."""
    return (old.allowed_topologies or []) != (new.allowed_topologies or [])


def waits_for_consumer(_waiting: Pod, _old: object, new: StorageClass) -> bool:
    """Claims of the new class are bound when a pod is scheduled."""
    return new.volume_binding_mode == "WaitForFirstConsumer"


def capacity_unchecked(waiting: Pod, old: CsiDriver, new: CsiDriver) -> bool:
    """A driver of an inline volume no longer reports its capacity.

    Volumes behind claims are not looked at, although they are what capacity matters to.
    """
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return stopped and any(each.csi and each.csi.driver == new.name for each in _volumes(waiting))


def capacity_grew(_waiting: Pod, old: CsiStorageCapacity, new: CsiStorageCapacity) -> bool:
    """Larger volumes can be made than before."""
    before, after = _largest(old), _largest(new)
    return after is not None and (before is None or after > before)


def _largest(capacity: CsiStorageCapacity) -> int | None:
    raw = capacity.maximum_volume_size
    raw = capacity.capacity if raw is None else raw
    return None if raw is None else value(raw)


def volume_moved(_waiting: Pod, old: PersistentVolume, new: PersistentVolume) -> bool:
    """The zone or region of a volume changed."""
    return _topology(old) != _topology(new)


def _topology(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """Zones and regions by label; a label with an empty part counts as absent."""
    found = {}
    for key in _TOPOLOGY_LABELS:
        if key in volume.labels:
            parts = frozenset(part.strip() for part in volume.labels[key].split("__"))
            if "" not in parts:
                found[key] = parts
    return found
