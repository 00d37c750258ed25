"""What the node rules of both generations read: cordons, and facts that are 0 on all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.objects.kinds.node import Taint
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.view import FactColumn

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def tolerates_cordon(cls: PodClass) -> bool:
    """Whether the pod tolerates the taint that a cordoned node stands for."""
    return tolerated(cls.spec.tolerations, UNSCHEDULABLE_TAINT)


def same_everywhere(
    cls: PodClass, column: FactColumn, answer: Callable[[Any], int], key: str
) -> bool:
    """Whether every distinct value of a fact gets the answer 0; asked once per value."""
    seen, same = cls.memo.get(key, (0, True))
    if seen < len(column.values):
        same = same and not any(map(answer, column.values[seen:]))
        cls.memo[key] = (len(column.values), same)
    return bool(same)
