"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from podium.engine.rules.nodes.v1_13 import CheckNodeUnschedulable
from podium.engine.rules.plugins import FilterPlugin


class NodeUnschedulable(CheckNodeUnschedulable, FilterPlugin):
    """The same rule under its present name."""

    name = "NodeUnschedulable"

    def skips(self, pod: object, view: object) -> bool:  # noqa: ARG002
        """It has no first look, so it never steps aside."""
        return False
