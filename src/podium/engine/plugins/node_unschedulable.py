"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from podium.engine.plugins.base import FilterPlugin
from podium.engine.predicates.nodes import CheckNodeUnschedulable


class NodeUnschedulable(CheckNodeUnschedulable, FilterPlugin):
    """The same rule under its present name."""

    name = "NodeUnschedulable"

    def skips(self, pod: object, view: object) -> bool:  # noqa: ARG002
        """It has no first look, so it never steps aside."""
        return False
