"""v1.36 VolumeRestrictions: disks that cannot be shared, and claims for one pod at a time.

A claim with access mode ReadWriteOncePod that some pod uses keeps others away from every node, not
only from that pod's: evicting it helps only where it runs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.plugins import FilterPlugin, Refused
from podium.engine.rules.volumes.conflicts.shared import pods_in_the_way
from podium.engine.state.disk_users import own_disks
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.view import View

DISK_CONFLICT = Reason("node(s) had no available disk")
ONE_POD_ONLY = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


class VolumeRestrictions(FilterPlugin):
    """No disk conflict on the node, no exclusive claim in use anywhere."""

    name = "VolumeRestrictions"

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with disks or claims."""
        return Scope.CLUSTER if own_disks(cls) or cls.claims else Scope.NONE

    def quiet(self, cls: PodClass) -> bool:
        """Only claims can be in the way."""
        return self.scope(cls) is Scope.NONE

    def prepare(self, pod: Incoming, view: View) -> Refused | None:
        """Every claim must exist."""
        for name in pod.cls.claims:
            if view.catalog.claims.get(name, pod.cls.namespace) is None:
                return Refused(self.name, f'persistentvolumeclaim "{name}" not found')
        return None

    def skips(self, pod: Incoming, view: View) -> bool:
        """No disk of its own, and no exclusive claim in use."""
        return not own_disks(pod.cls) and not self._in_use(pod.cls, view)

    def idle(self, pod: Incoming, view: View) -> bool:
        """The same at any time."""
        return self.skips(pod, view)

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """The disk goes first, and alone."""
        return (DISK_CONFLICT, ONE_POD_ONLY)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: users of disks and claims are counted."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Which of the two stands in the way."""
        in_use = at.full(self._in_use(pod.cls, at.view))
        exclusive = frozenset(self._exclusive(pod.cls, at.view))
        if at.on_trial and exclusive:
            in_use = in_use + at.gained_classes(
                ("exclusive", exclusive), partial(_claims_of, exclusive)
            )
        taken = pods_in_the_way(pod.cls, at)
        return at.where(taken > 0, at.full(1), (in_use > 0) * 2)

    def _exclusive(self, cls: PodClass, view: View) -> set[str]:
        claims = {name: view.catalog.claims.get(name, cls.namespace) for name in cls.claims}
        return {
            name
            for name, claim in claims.items()
            if claim is not None and "ReadWriteOncePod" in (claim.spec.access_modes or ())
        }

    def _in_use(self, cls: PodClass, view: View) -> int:
        """How many of the pod's exclusive claims some pod on a known node uses."""
        users = (view.claim_users.get((cls.namespace, n), ()) for n in self._exclusive(cls, view))
        return sum(bool(view.known[list(rows)].any()) for rows in users)


def _claims_of(exclusive: frozenset[str], cls: PodClass) -> int:
    return sum(name in exclusive for name in cls.claims)
