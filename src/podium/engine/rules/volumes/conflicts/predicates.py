"""v1.13 NoDiskConflict: a disk that cannot be shared must not be used twice on a node.

Only disks named in the pod itself count, never claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PredicateDeclaration, plain
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, all_rows
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.volumes.conflicts.shared import count_disk_conflicts, disks_in_use
from podium.engine.state.disk_users import own_disks
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass

DISK_CONFLICT = Reason("node(s) had no available disk")


class NoDiskConflict(BitFilter):
    """No pod on the node may use a disk of the pod, unless both mount it read-only."""

    name = "NoDiskConflict"
    reasons = (DISK_CONFLICT,)

    def scope(self, cls: PodClass) -> Scope:
        """The pods on the node, for pods that name disks."""
        return Scope.PODS if own_disks(cls) else Scope.NONE

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
        """On every row: the users of disks are counted."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a disk of the pod is in conflict."""
        return (count_disk_conflicts(pod.cls, at) > 0) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The disks in conflict, with the pods that use them."""
        return disks_in_use(DISK_CONFLICT, pod.cls, at)


NO_DISK_CONFLICT: Final = PredicateDeclaration(
    "NoDiskConflict",
    "no disk that the pod mounts is in use on the node in a way that excludes it",
    plain(NoDiskConflict),
    provided=True,
)
