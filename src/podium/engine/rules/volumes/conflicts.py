"""Disks that cannot be shared, and ReadWriteOncePod claims: VolumeRestrictions.

A ReadWriteOncePod claim in use by another pod rejects every node, not only that pod's. Evicting
the pod cures this on its own node only. NoDiskConflict of v1.13 looks at disks alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.causes import Cause, ClaimInUse, DiskInUse, PodOnNode, placed_pod
from podium.engine.framework.declaration import PluginDeclaration, PredicateDeclaration, plain
from podium.engine.framework.missing_points import FailingFilter
from podium.engine.framework.rule import (
    Activity,
    BatchTrials,
    BitFilter,
    Refused,
    Scope,
    all_rows,
    scope_with,
)
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows
from podium.engine.rules.plugins import always
from podium.engine.rules.volumes.claims import claim_facts, claim_named, claim_names, volumes_of
from podium.engine.state.disk_users import conflicts, disk_name, own_disks
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.pod import GcePersistentDisk, IscsiVolume, Pod, RbdVolume, Volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


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


DISK_CONFLICT = Reason("node(s) had no available disk")
CLAIM_IN_USE = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


_Disk = GcePersistentDisk | IscsiVolume | RbdVolume


def disks_conflict(one: Volume, other: Volume) -> bool:
    """Whether both are one inline disk that is written; EBS disks cannot be shared at all.

    Portal and lun of iSCSI disks are not compared: one target, one user.
    """
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


class VolumeRestrictions(BitFilter):
    """No disk conflict on the node, and no ReadWriteOncePod claim in use in the cluster."""

    kinds = ("PersistentVolumeClaim",)
    name = "VolumeRestrictions"
    scope = scope_with("volumes", Scope.CLUSTER)
    reasons = (DISK_CONFLICT, CLAIM_IN_USE)

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """A claim that does not exist refuses the pod."""
        claims = claim_facts(pod.cls, view.catalog).claims
        if None not in claims:
            return None
        name = pod.cls.claims[claims.index(None)]
        return Refused(self.name, f'persistentvolumeclaim "{name}" not found')

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped without disks and without ReadWriteOncePod claims in use."""
        concerned = bool(own_disks(pod.cls)) or bool(self._count_in_use(pod.cls, view))
        return Activity.ACTIVE if concerned else Activity.SKIPPED

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: the users of disks and claims are counted."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a disk is in conflict, else 2 where a ReadWriteOncePod claim is in use."""
        in_use = at.full(self._count_in_use(pod.cls, at.view))
        exclusive = self._exclusive_claims(pod.cls, at.view)
        if exclusive:
            in_use = in_use + at.gained_classes(
                ("exclusive", exclusive), partial(_count_claims, exclusive)
            )
        taken = count_disk_conflicts(pod.cls, at)
        return at.where(taken > 0, at.full(1), (in_use > 0) * 2)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The disks in conflict and the claims in use, with the pods that use them."""
        yield from disks_in_use(DISK_CONFLICT, pod.cls, at)
        for name in sorted(self._exclusive_claims(pod.cls, at.view)):
            key = (self.name, name)
            if key not in memo:
                memo[key] = list(_users(pod.cls.namespace, name, at))
            holders = tuple(memo[key])
            if at.modified:
                here = [p for p in at.residents() if _uses(p.cls, pod.cls.namespace, name)]
                elsewhere = [holder for holder in holders if holder.node != at.name]
                holders = (*elsewhere, *(placed_pod(resident, at) for resident in here))
            if holders:
                yield ClaimInUse(CLAIM_IN_USE.text, f"{pod.cls.namespace}/{name}", holders)

    def _exclusive_claims(self, cls: PodClass, view: View) -> frozenset[str]:
        facts = claim_facts(cls, view.catalog)
        found = facts.exclusive
        if found is None:
            alone = [
                name
                for name, claim in zip(cls.claims, facts.claims, strict=True)
                if claim is not None and "ReadWriteOncePod" in (claim.spec.access_modes or ())
            ]
            found = facts.exclusive = frozenset(alone)
        return found

    def _count_in_use(self, cls: PodClass, view: View) -> int:
        """How many of the pod's ReadWriteOncePod claims are used by pods on known nodes."""
        exclusive = self._exclusive_claims(cls, view)
        if not exclusive:
            return 0
        users = (view.pods.claim_users.get((cls.namespace, n), ()) for n in exclusive)
        return sum(bool(view.nodes.known[list(rows)].any()) for rows in users)


def _uses(cls: PodClass, namespace: str, claim: str) -> bool:
    return cls.namespace == namespace and claim in cls.claims


def _users(namespace: str, claim: str, at: OneRow) -> Iterator[PodOnNode]:
    """The pods on known nodes that use a claim."""
    for row in at.view.pods.claim_users.get((namespace, claim), ()):
        if at.view.nodes.known[row]:
            for resident in at.view.pods.residents[row]:
                if _uses(resident.cls, namespace, claim):
                    yield placed_pod(resident, at)


def _count_claims(exclusive: frozenset[str], cls: PodClass) -> int:
    return sum(name in exclusive for name in cls.claims)


class DiskConflictsOnly(FailingFilter):
    """VolumeRestrictions without PreFilter: disks are compared; without a conflict it fails."""

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The conflict of disks, or the error."""
        taken = count_disk_conflicts(pod.cls, at) > 0
        at.fail_where(taken ^ True, self.error)
        return at.codes(self.name, taken * 1, (DISK_CONFLICT,))

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The disks in conflict, with the pods that use them."""
        return disks_in_use(DISK_CONFLICT, pod.cls, at)


_NO_RESTRICTIONS: Final = 'cannot read "PreFilterVolumeRestrictions" from cycleState'


def frees_disks(waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod of the same namespace went that shared a disk or a claim with the waiting one."""
    if old.namespace != waiting.namespace:
        return False
    if any(
        disks_conflict(mine, other) for mine in volumes_of(waiting) for other in volumes_of(old)
    ):
        return True
    shared = set(claim_names(waiting, ephemeral=False)) & set(claim_names(old, ephemeral=False))
    return bool(shared)


VOLUME_RESTRICTIONS: Final = PluginDeclaration(
    "VolumeRestrictions",
    "preFilter filter",
    "disks and claims that exclude each other",
    filter=plain(VolumeRestrictions),
    pre_filter_error=_NO_RESTRICTIONS,
    without_pre_filter=lambda rule: DiskConflictsOnly(rule.name, _NO_RESTRICTIONS),
    events={
        "Node Add": always,
        "Pod Delete": frees_disks,
        "PersistentVolumeClaim Add": claim_named,
    },
)


class NoDiskConflict(BitFilter):
    """No pod on the node may use a disk of the pod, unless both mount it read-only."""

    name = "NoDiskConflict"
    reasons = (DISK_CONFLICT,)

    def scope(self, cls: PodClass) -> Scope:
        """The pods on the node, for pods that name disks."""
        return Scope.PODS if own_disks(cls) else Scope.NONE

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: the users of disks are counted."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a disk of the pod is in conflict."""
        return (count_disk_conflicts(pod.cls, at) > 0) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The disks in conflict, with the pods that use them."""
        return disks_in_use(DISK_CONFLICT, pod.cls, at)


NO_DISK_CONFLICT: Final = PredicateDeclaration(
    "NoDiskConflict",
    "no disk that the pod mounts is in use on the node in a way that excludes it",
    plain(NoDiskConflict),
    provided=True,
)
