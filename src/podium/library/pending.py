"""Which pods wait for a node, and in which order they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.wakeups.wakeups import MoveRules
from podium.engine.framework.profile import Profile
from podium.errors import InputError
from podium.library.notices import Notify, log_warning
from podium.library.simulating import simulation_of
from podium.objects.reading.collection import label

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from podium.cluster.simulation import Step
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
    objects: Objects,
    profiles: Profile | Sequence[Profile],
    *,
    pods: Sequence[Pod] | None = None,
    recording: bool = False,
    notify: Notify = log_warning,
) -> Iterator[Step]:
    """Place the pending pods one after the other; each attempt is yielded when it is made.

    *profiles* is one profile, or all profiles of a configuration: each decides about the pods of
    its scheduler. *pods* are tried in this order; by default it is what `pending` returns.
    *recording* keeps all verdicts and scores in the decisions. Extenders are asked
    over HTTP; *notify* is called with failures that are ignored.
    """
    first, *others = [profiles] if isinstance(profiles, Profile) else profiles
    schedulers = {each.scheduler_name for each in (first, *others)}
    by_priority = first.by_priority
    waiting = pending(objects, schedulers, by_priority=by_priority) if pods is None else pods
    seen = seen_by(objects, schedulers, without=waiting)

    def steps() -> Iterator[Step]:
        with simulation_of(first, others, notify=notify) as simulation:
            simulation.load(seen)
            yield from simulation.run(waiting, recording=recording)

    return steps()
