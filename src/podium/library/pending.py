"""Which pods wait for a node, and in which order they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.simulation import Simulation
from podium.cluster.wakeups.wakeups import MoveRules
from podium.errors import InputError
from podium.objects.reading.collection import label

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from podium.cluster.simulation import Step
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


def is_pending(pod: Pod, schedulers: Collection[str]) -> bool:
    """Whether the pod waits for one of these: no node, not deleted, not finished."""
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
    """The waiting pods in queue order: priority, then time, then the order of arrival.

    Without *by_priority* (the feature gate PodPriority is off) the order of arrival alone counts.
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
    """The objects as those schedulers see them, except the pods that they are about to place.

    Pods without a node that wait for another scheduler are none of their business.
    """
    left_out = {pod.key for pod in without}
    seen = objects.copied()
    seen.pods = [
        pod
        for pod in objects.pods
        if pod.key not in left_out and (pod.spec.node_name or pod.spec.scheduler_name in schedulers)
    ]
    return seen


def simulate(
    objects: Objects, profile: Profile, *, by_priority: bool = True, recording: bool = False
) -> Iterator[Step]:
    """Place the pending pods one after the other; every attempt as it is made.

    *recording* keeps all verdicts and scores in the decisions.
    """
    schedulers = (profile.scheduler_name,)
    waiting = pending(objects, schedulers, by_priority=by_priority)
    simulation = Simulation(profile)
    simulation.load(seen_by(objects, schedulers, without=waiting))
    return simulation.run(waiting, recording=recording)
