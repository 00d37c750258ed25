"""Which nodes wake pods that TaintToleration rejected.

Upstream: the queueing hints of tainttoleration, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.taints import tolerated

_HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def taints_tolerated(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came without taints that the pod does not tolerate, or lost them."""
    was_shut = old is None or _shut(waiting, old)
    return was_shut and not _shut(waiting, new)


def _shut(pod: Pod, node: Node) -> bool:
    hard = (taint for taint in node.spec.taints or () if taint.effect in _HARD_EFFECTS)
    return not all(tolerated(pod.spec.tolerations, taint) for taint in hard)
