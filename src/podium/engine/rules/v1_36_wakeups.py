"""What several plugins of v1.36 ask of an event before it wakes a pod that they rejected."""

from __future__ import annotations

from podium.objects.kinds.pod import Pod


def always(_waiting: Pod, _old: object, _new: object) -> bool:
    """Every such event may help."""
    return True


def never(_waiting: Pod, _old: object, _new: object) -> bool:
    """No such event helps."""
    return False


def is_self(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself changed."""
    return new.uid == waiting.uid


def holds_place(pod: Pod) -> bool:
    """Whether the pod counts on a node: it has one or is nominated to one."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
