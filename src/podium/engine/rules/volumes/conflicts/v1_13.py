"""v1.13 NoDiskConflict: a disk that cannot be shared must not be used twice on a node.

Only disks named in the pod itself are looked at, never claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.predicates import BitPredicate
from podium.engine.rules.volumes.conflicts.shared import pods_in_the_way
from podium.engine.state.disk_users import own_disks
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.view import View

DISK_CONFLICT = Reason("node(s) had no available disk")


class NoDiskConflict(BitPredicate):
    """No pod on the node may hold a disk the pod wants, unless both only read it."""

    name = "NoDiskConflict"

    def scope(self, cls: PodClass) -> Scope:
        """Few pods name a disk."""
        return Scope.PODS if own_disks(cls) else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (DISK_CONFLICT,)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: users of a disk are counted."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some disk is taken."""
        return (pods_in_the_way(pod.cls, at) > 0) * 1
