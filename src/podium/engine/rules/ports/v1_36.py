"""v1.36 NodePorts: no host port is used twice on a node."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.rules.ports.shared import HostPorts
from podium.engine.rules.ports.v1_36_wakeups import frees_ports
from podium.engine.rules.v1_36_wakeups import always
from podium.engine.state.verdicts import Reason

HOST_PORT_CONFLICT = Reason("node(s) didn't have free ports for the requested pod ports")


class NodePorts(HostPorts):
    """The filter on host ports."""

    name = "NodePorts"
    reasons = (HOST_PORT_CONFLICT,)


NODE_PORTS: Final = PluginDeclaration(
    "NodePorts",
    "preFilter filter",
    "free host ports",
    filter=plain(NodePorts),
    pre_filter_error='reading "PreFilterNodePorts" from cycleState: not found',
    events={"Node Add": always, "Pod Delete": frees_ports},
)
