"""A pod group for the pages: its pods, what it needs, and its last cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.serving.page_data.waiting import waiting_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.queue.queue import SchedulingQueue
    from podium.engine.state.view import View
    from podium.serving.page_data.activity import WaitingPod

Data = dict[str, Any]


def group_data(
    view: View,
    queue: SchedulingQueue,
    key: str,
    waiting: Sequence[WaitingPod],
    cycle: Data | None,
) -> Data | None:
    """Everything the page of a group shows; None if neither the group nor a pod is there.

    *waiting* are its pods without a node, *cycle* is its last cycle, where one is known.
    """
    namespace, _, name = key.partition("/")
    group = view.catalog.pod_groups.get(name, namespace)
    placed = {
        each.resident.key: view.nodes.names[each.resident.row]
        for each in view.pods.groups.placed(key)
    }
    left = [each for each in waiting if each.pod.key not in placed]
    if group is None and not placed and not left:
        return None
    found: Data = {
        "group": key,
        "placed": len(placed),
        "members": [
            *({"pod": pod, "node": node, "reason": ""} for pod, node in placed.items()),
            *({"pod": each.pod.key, "node": None, "reason": each.reason} for each in left),
        ],
        "cycle": cycle,
        "waiting": waiting_data(queue, left[0].pod.key) if left else None,
    }
    if group is not None:
        condition = group.condition()
        found |= {
            "policy": "gang" if group.is_gang else "basic",
            "minCount": group.min_count,
            "missing": max(group.min_count - len(placed), 0),
            "priority": group.priority,
            "evictedTogether": group.evicted_together,
        }
        if condition is not None:
            found["condition"] = {"status": condition.status, "reason": condition.reason}
    return found
