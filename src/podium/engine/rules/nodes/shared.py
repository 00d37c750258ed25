"""Cordoned nodes, and columns of node facts, as the rules of both generations read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.causes import Cause, Cordoned, OtherNode
from podium.objects.kinds.node import Taint
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.engine.rows.rows import OneRow
    from podium.engine.state.node_columns import FactColumn
    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.verdicts import Reason

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def tolerates_cordon(cls: PodClass) -> bool:
    """Whether the pod tolerates the taint of unschedulable nodes."""
    return tolerated(cls.spec.tolerations, UNSCHEDULABLE_TAINT)


def cordon(reason: Reason, at: OneRow) -> Iterator[Cause]:
    """The cause where the node is cordoned."""
    if at.view.nodes.facts.unschedulable.on(at.row):
        yield Cordoned(reason.text)


def other_node(reason: Reason, wanted: str, at: OneRow) -> Iterator[Cause]:
    """The cause where the pod names another node."""
    if wanted and wanted != at.name:
        yield OtherNode(reason.text, wanted)


def zero_for_all_values(
    cls: PodClass, column: FactColumn, answer: Callable[[Any], int], key: str
) -> bool:
    """Whether `answer` is 0 for every distinct value of a column of node facts.

    The result is kept for the pod class under `key`; each value is passed to `answer` once.
    """
    seen, same = cls.memo.get(key, (0, True))
    if seen < len(column.values):
        same = same and not any(map(answer, column.values[seen:]))
        cls.memo[key] = (len(column.values), same)
    return bool(same)
