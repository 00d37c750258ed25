"""Placed and nominated pods as causes name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import PodOnNode

if TYPE_CHECKING:
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Resident


def placed_pod(resident: Resident, at: OneRow) -> PodOnNode:
    """The pod with its node; a pod that is nominated to the row has no row of its own."""
    nominated = resident.row < 0
    node = at.name if nominated else at.view.nodes.names[resident.row]
    return PodOnNode(resident.key, node, nominated)
