"""NodeName: a pod that names its node fits that node only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.plugins.base import FilterPlugin
from podium.engine.predicates.nodes import HostName
from podium.engine.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.pod_class import Incoming
    from podium.engine.view import View

OTHER_NODE = Reason("node(s) didn't match the requested node name", curable=False)


class NodeName(HostName, FilterPlugin):
    """The same rule with other words."""

    name = "NodeName"

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (OTHER_NODE,)
