"""Which pods wait for a node, and in which order they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.wakeups.wakeups import MoveRules
from podium.errors import InputError
from podium.objects.reading.collection import label

if TYPE_CHECKING:
    from collections.abc import Collection

    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


def is_pending(pod: Pod, schedulers: Collection[str]) -> bool:
    """Whether a pod of these schedulers has no node yet, and is neither deleted nor finished."""
    return (
        not pod.spec.node_name
        and not pod.terminating
        and not pod.finished
        and pod.spec.scheduler_name in schedulers
    )


def pending(
    objects: Objects,
    schedulers: Collection[str] = ("default-scheduler",),
    *,
    by_priority: bool = True,
) -> list[Pod]:
    """The pending pods of these schedulers, in the order in which they are tried.

    The scheduling queue goes by priority, then creation time, then the order of the objects.
    Without *by_priority* (feature gate PodPriority of v1.13) the last one alone counts.
    """
    waiting = [pod for pod in objects.pods if is_pending(pod, schedulers)]
    if not by_priority:
        return waiting
    queue = SchedulingQueue(lambda: 0.0, MoveRules())
    for pod in waiting:
        try:
            queue.add(pod)
        except ValueError as error:
            name = label("Pod", pod.namespace, pod.name)
            what = f"a time cannot be read: {error}"
            hint = "write it like 2024-05-01T10:00:00Z"
            raise InputError(what, object=name, hint=hint) from None
    ordered = []
    while attempt := queue.pop():
        queue.done(attempt)
        ordered.append(attempt.pod)
    return ordered


def seen_by(
    objects: Objects, schedulers: Collection[str], without: Collection[Pod] = ()
) -> Objects:
    """The objects as these schedulers see them, except the pods that are placed next.

    Pods without a node that wait for another scheduler are left out as well.
    """
    left_out = {pod.key for pod in without}
    seen = objects.copied()
    seen.pods = [
        pod
        for pod in objects.pods
        if pod.key not in left_out and (pod.spec.node_name or pod.spec.scheduler_name in schedulers)
    ]
    return seen
