"""v1.36 VolumeRestrictions: disks that cannot be shared, and ReadWriteOncePod claims.

A ReadWriteOncePod claim in use by another pod rejects every node, not only that pod's. Evicting
the pod cures this on its own node only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, ClaimInUse, PlacedPod
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.missing_points import FailingFilter
from podium.engine.framework.rule import (
    Activity,
    BatchTrials,
    BitFilter,
    Refused,
    Scope,
    all_rows,
)
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.placed_pods import placed_pod
from podium.engine.rules.v1_36_wakeups import always
from podium.engine.rules.volumes.conflicts.shared import count_disk_conflicts, disks_in_use
from podium.engine.rules.volumes.conflicts.v1_36_wakeups import frees_disks
from podium.engine.rules.volumes.v1_36_claims import claim_facts
from podium.engine.rules.volumes.v1_36_wakeups import claim_named
from podium.engine.state.disk_users import own_disks
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

DISK_CONFLICT = Reason("node(s) had no available disk")
CLAIM_IN_USE = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


class VolumeRestrictions(BitFilter):
    """No disk conflict on the node, and no ReadWriteOncePod claim in use in the cluster."""

    kinds = ("PersistentVolumeClaim",)
    name = "VolumeRestrictions"
    reasons = (DISK_CONFLICT, CLAIM_IN_USE)

    def scope(self, cls: PodClass) -> Scope:
        """The cluster, for pods with disks or claims."""
        return Scope.CLUSTER if own_disks(cls) or cls.claims else Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """A claim that does not exist refuses the pod."""
        return self.scope(cls) is not Scope.NONE

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

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
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


def _users(namespace: str, claim: str, at: OneRow) -> Iterator[PlacedPod]:
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

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The disks in conflict, with the pods that use them."""
        return disks_in_use(DISK_CONFLICT, pod.cls, at)


_NO_RESTRICTIONS: Final = 'cannot read "PreFilterVolumeRestrictions" from cycleState'
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
