"""NodeName: a pod that names its node fits that node only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.nodes.v1_13 import HostName
from podium.engine.rules.plugins import FilterPlugin
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

OTHER_NODE = Reason("node(s) didn't match the requested node name", curable=False)


class NodeName(HostName, FilterPlugin):
    """The same rule with other words."""

    name = "NodeName"

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (OTHER_NODE,)
