"""v1.13 PodFitsHostPorts: no host port is used twice on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PredicateDeclaration, plain
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, all_rows
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming, PodClass

HOST_PORT_CONFLICT = Reason("node(s) didn't have free ports for the requested pod ports")


class PodFitsHostPorts(BitFilter):
    """No host port of the pod may be in use on the node.

    The address 0.0.0.0 conflicts with every address, on either side.
    """

    name = "PodFitsHostPorts"
    reasons = (HOST_PORT_CONFLICT,)

    def scope(self, cls: PodClass) -> Scope:
        """The pods on the node, for pods with host ports."""
        return Scope.PODS if cls.ports else Scope.NONE

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
        """On every row: the ports in use are known for each row."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a conflicting port is in use."""
        if not pod.cls.ports:
            return at.full(0)
        return at.port_conflict(pod.cls.ports) * 1


POD_FITS_HOST_PORTS: Final = PredicateDeclaration(
    "PodFitsHostPorts",
    "the host ports that the pod wants are free on the node",
    plain(PodFitsHostPorts),
)

POD_FITS_PORTS: Final = PredicateDeclaration(
    "PodFitsPorts", "an old name of PodFitsHostPorts; never runs", plain(PodFitsHostPorts)
)
