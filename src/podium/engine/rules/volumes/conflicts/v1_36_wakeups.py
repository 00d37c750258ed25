"""Which events wake pods that VolumeRestrictions rejected.

Upstream: the queueing hints of volumerestrictions, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.engine.rules.volumes.v1_36_wakeups import claim_names, volumes_of
from podium.objects.kinds.pod import GcePersistentDisk, IscsiVolume, Pod, RbdVolume, Volume

_Disk = GcePersistentDisk | IscsiVolume | RbdVolume


def frees_disks(waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod of the same namespace went that shared a disk or a claim with the waiting one."""
    if old.namespace != waiting.namespace:
        return False
    if any(_conflict(mine, other) for mine in volumes_of(waiting) for other in volumes_of(old)):
        return True
    shared = set(claim_names(waiting, ephemeral=False)) & set(claim_names(old, ephemeral=False))
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


def _writes(one: _Disk, other: _Disk) -> bool:
    return not (one.read_only and other.read_only)


def _same_image(one: RbdVolume, other: RbdVolume) -> bool:
    monitors = set(one.monitors or ()) & set(other.monitors or ())
    return bool(monitors) and (one.pool, one.image) == (other.pool, other.image)
