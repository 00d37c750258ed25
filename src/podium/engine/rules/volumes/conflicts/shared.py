"""Disks named in pods that cannot be shared on a node. Claims play no part."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.causes import Cause, DiskInUse
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows
from podium.engine.rules.placed_pods import placed_pod
from podium.engine.state.disk_users import conflicts, disk_name, own_disks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import RbdVolume, Volume


def count_disk_conflicts(cls: PodClass, at: Rows[K]) -> Ints[K]:
    """How many times a disk of the pod is in conflict with one used on the row."""
    if not own_disks(cls):
        return at.full(0)
    view: View = at.view

    def counted(rows: ManyRows) -> np.ndarray:
        users = view.pods.disk_users.in_the_way(cls, disks_conflict, view.nodes.capacity)
        gained = rows.gained_classes(("disks", cls), partial(conflicts, cls, disks_conflict))
        found: np.ndarray = users[rows.index] + gained
        return found

    def walked(row: OneRow) -> int:
        return sum(conflicts(cls, disks_conflict, other.cls) for other in row.residents())

    return at.either(counted, walked)


def disks_in_use(reason: Reason, cls: PodClass, at: OneRow) -> Iterator[Cause]:
    """Every disk of the pod that is in conflict with one on the row, with the pod that uses it."""
    for resident in at.residents():
        for other in resident.cls.volumes:
            for volume in own_disks(cls):
                if disks_conflict(volume, other):
                    holder = placed_pod(resident, at)
                    yield DiskInUse(reason.text, volume.name, disk_name(volume), holder)


def disks_conflict(one: Volume, two: Volume) -> bool:
    """Whether two volumes cannot be on one node. EBS volumes conflict even if read-only."""
    if one.gce_persistent_disk and two.gce_persistent_disk:
        a, b = one.gce_persistent_disk, two.gce_persistent_disk
        if a.pd_name == b.pd_name and not (a.read_only and b.read_only):
            return True
    if one.aws_elastic_block_store and two.aws_elastic_block_store:
        ebs = two.aws_elastic_block_store
        if one.aws_elastic_block_store.volume_id == ebs.volume_id:
            return True
    # Portal and lun are not compared: one target, one user.
    if one.iscsi and two.iscsi and one.iscsi.iqn == two.iscsi.iqn:
        return not (one.iscsi.read_only and two.iscsi.read_only)
    return bool(one.rbd and two.rbd and _same_image(one.rbd, two.rbd))


def _same_image(one: RbdVolume, two: RbdVolume) -> bool:
    return (
        not set(one.monitors or ()).isdisjoint(two.monitors or ())
        and one.pool == two.pool
        and one.image == two.image
        and not (one.read_only and two.read_only)
    )
