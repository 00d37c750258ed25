"""v1.36 NodePorts: no host port is used twice on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, all_rows
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.ports.v1_36_wakeups import frees_ports
from podium.engine.rules.v1_36_wakeups import always
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming, PodClass

HOST_PORT_CONFLICT = Reason("node(s) didn't have free ports for the requested pod ports")


class NodePorts(BitFilter):
    """No host port of the pod may be in use on the node.

    The address 0.0.0.0 conflicts with every address, on either side.
    """

    name = "NodePorts"
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


NODE_PORTS: Final = PluginDeclaration(
    "NodePorts",
    "preFilter filter",
    "free host ports",
    filter=plain(NodePorts),
    pre_filter_error='reading "PreFilterNodePorts" from cycleState: not found',
    events={"Node Add": always, "Pod Delete": frees_ports},
)
