"""v1.13 PodFitsHostPorts: no host port is used twice on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.predicates import BitPredicate
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.view import View

HOST_PORTS = Reason("node(s) didn't have free ports for the requested pod ports")


class PodFitsHostPorts(BitPredicate):
    """No host port the pod wants may be in use on the node.

    The ip 0.0.0.0 stands for all of them, on either side.
    """

    name = "PodFitsHostPorts"

    def scope(self, cls: PodClass) -> Scope:
        """Most pods want no host port."""
        return Scope.PODS if cls.ports else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (HOST_PORTS,)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: the ports in use are known for each row."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """A conflicting port is in use."""
        if not pod.cls.ports:
            return at.full(0)
        return at.port_conflict(pod.cls.ports) * 1
