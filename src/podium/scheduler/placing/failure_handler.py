"""What follows when a pod was not placed: it returns to the queue, and its status is written.

A preemption is carried out here as well: nominations that it ends are removed, and its victims are
deleted. Each of these effects is a request of its own, sent in the background in that order.

Upstream: handleSchedulingFailure in schedule_one.go and preemption/executor.go, Kubernetes v1.36;
scheduler.go, v1.13.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.cluster.queue.entities import Pool
from podium.engine.cycle.cycle import NO_NODES
from podium.engine.framework.group_decision import ERROR
from podium.kube.errors import ApiError
from podium.objects.kinds.pod import PodCondition
from podium.scheduler.placing.status_writers import PREEMPTED, FailedAttempt
from podium.scheduler.placing.tasks import Stage
from podium.scheduler.state.clock import written
from podium.scheduler.state.observers import ATTEMPT_FAILED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from podium.cluster.queue.entities import Turn
    from podium.engine.framework.decision import ClaimRelease, Decision
    from podium.engine.framework.group_decision import GroupPreemption, MemberResult
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup
    from podium.scheduler.placing.pod_events import PodEvents
    from podium.scheduler.placing.status_writers import PodStatusWriter
    from podium.scheduler.placing.tasks import WorkerPool
    from podium.scheduler.state.behaviour import Behaviour
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.observers import AttemptResult, Observer

logger = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
#: The condition of a pod that a scheduler evicts.
EVICTED: Final = PodCondition(type="DisruptionTarget", status="True", reason=PREEMPTED)
_NOT_FOUND = 404
#: Pods of groups wait here until the group is queued with all of them.
_APART: Final = frozenset({Pool.PENDING, Pool.INCOMPLETE})
#: Seconds until a pod is attempted again after a write about it failed: twice as many with every
#: attempt, from the first of these to the second.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class FailureHandler:
    """Requeues pods that were not placed, and writes why; the scheduling loop goes on meanwhile."""

    def __init__(
        self,
        *,
        state: ClusterState,
        client: KubeApi,
        status: PodStatusWriter,
        events: PodEvents,
        workers: WorkerPool,
        observers: Sequence[Observer],
        behaviour: Behaviour,
        clocks: Clocks,
        release: Callable[[Pod, ClaimRelease], None] = lambda _, __: None,
    ) -> None:
        """*release* gives back a resource claim that keeps a pod from its nodes."""
        self._release = release
        self._state = state
        self._client = client
        self._status = status
        self._events = events
        self._workers = workers
        self._observers = observers
        self._behaviour = behaviour
        self._clocks = clocks
        #: The tasks that wait to retry, by the uid of their pod.
        self._retries: dict[str, asyncio.Task[None]] = {}
        #: The end of the last write about a pod, by uid, while it is under way.
        self._writing: dict[str, asyncio.Event] = {}

    @property
    def retrying(self) -> int:
        """The number of pods that wait to be attempted again because a write failed."""
        return len(self._retries)

    async def cancel(self) -> None:
        """Cancel the retries that have not begun."""
        tasks = list(self._retries.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- the two ways to fail -------------------------------------------------------------------

    def not_decided(self, turn: Turn, result: AttemptResult) -> None:
        """Handle an attempt that found no node: write why, and evict the victims if it has any."""
        decision, profile = result.decision, result.profile
        is_error = bool(decision.error) and decision.error != NO_NODES
        outcome = FailedAttempt(
            self._behaviour.error_reason if is_error else UNSCHEDULABLE,
            decision.message,
            nomination_of(decision, profile),
        )
        pod = self._requeue(turn, outcome, rejected_by=result.rejected_by)
        if pod is None:
            return
        victims = self._victims(decision)
        self._events.failed_scheduling(pod, decision.message)
        if decision.released is not None:
            self._release(pod, decision.released)
        for victim in victims:
            self._count_as_terminating(victim)
        for observer in self._observers if victims else ():
            observer.evicting(result, [victim.key for victim in victims])
        self._workers.submit(partial(self._write, pod, outcome, result, victims))

    def not_scheduled(
        self,
        turn: Turn,
        result: AttemptResult,
        member: MemberResult,
        *,
        released: Sequence[ClaimRelease] = (),
    ) -> None:
        """Handle a pod of a group that gets no node: its own text, or that of the group.

        Its claim is given back if it is one of those *released*.
        """
        own = member.decision is not None and member.decision.node is None
        outcome = FailedAttempt(
            self._behaviour.error_reason if member.code == ERROR else UNSCHEDULABLE,
            member.message,
            member.nomination,
        )
        rejected_by = result.rejected_by if own and member.code != ERROR else ()
        pod = self._requeue(turn, outcome, rejected_by=rejected_by)
        if pod is not None:
            self._events.failed_scheduling(pod, member.message)
            if result.decision.released is not None and result.decision.released in released:
                self._release(pod, result.decision.released)
            self._workers.submit(partial(self._write, pod, outcome, result, ()))

    def evict_for_group(self, group: PodGroup, found: GroupPreemption, scheduler: str) -> None:
        """Delete the victims of a group, which count as terminating from now on."""
        known = (self._state.pod_named(key) for key in found.pods)
        victims = [
            pod
            for pod, uid in zip(known, found.uids, strict=True)
            if pod is not None and pod.uid == uid and not pod.terminating
        ]
        for victim in victims:
            self._count_as_terminating(victim)
        if victims:
            for observer in self._observers:
                observer.group_evicting(group.key, victims)
            self._workers.submit(partial(self._evict_all, victims, group, scheduler))

    async def _evict_all(self, victims: Sequence[Pod], group: PodGroup, scheduler: str) -> None:
        """Delete victims of a group; those that were not deleted count as they are known."""
        remaining, begun = deque(victims), self._clocks.timer()
        missing: list[Pod] = []
        text = f"{scheduler}: preempting to accommodate a higher priority podgroup"
        try:
            while remaining:
                victim = remaining[0]
                if await self._evict(victim, text):
                    self._events.preempted_by_group(victim, group, scheduler)
                else:
                    missing.append(victim)
                remaining.popleft()
        except ApiError as error:
            logger.warning("pod group %s: %s", group.key, _with_steps(error))
        finally:
            self._report_evictions("podgroup", begun, failed=bool(remaining))
            if missing or remaining:
                self._state.apply(self._state.keep_victims, (*missing, *remaining))

    def _report_evictions(self, preemptor: str, begun: float, *, failed: bool) -> None:
        seconds = self._clocks.timer() - begun
        for observer in self._observers:
            observer.eviction_ended(preemptor, seconds, failed=failed)

    def not_bound(self, turn: Turn, result: AttemptResult, error: str, stage: Stage) -> None:
        """Handle a pod with a node whose binding, or whose *stage* before that, failed."""
        behaviour = self._behaviour
        texts = {
            Stage.PRE_BIND: behaviour.pre_bind_text,
            Stage.VOLUMES: behaviour.volumes_text,
            Stage.BIND: behaviour.binding_text,
        }
        message = texts[stage].replace("{error}", error)
        outcome = FailedAttempt(
            behaviour.volumes_reason if stage is Stage.VOLUMES else behaviour.binding_reason,
            message if behaviour.condition_tells_binding_error else "",
            "" if result.profile.nominated_first else None,
        )
        pod = self._requeue(turn, outcome, rejected_by=(), late=True)
        if pod is not None:
            self._events.failed_scheduling(pod, message)
            self._workers.submit(partial(self._write, pod, outcome, result, ()))

    # --- the queue and the cache ----------------------------------------------------------------

    def _requeue(
        self, turn: Turn, outcome: FailedAttempt, *, rejected_by: Iterable[str], late: bool = False
    ) -> Pod | None:
        """Return the pod to the queue; its newest version, or None if it was deleted or bound."""
        queue = self._state.queue
        pod = self._state.pod(turn.pod)
        if pod is None or pod.spec.node_name:
            queue.done(turn)
            return None
        updated = self._status.with_condition(pod, outcome)
        cycle = queue.scheduling_cycle if late else None
        pool = self._state.requeue(turn, updated, rejected_by=rejected_by, cycle=cycle)
        for observer in self._observers if pool not in _APART else ():
            observer.queued(pool, ATTEMPT_FAILED)
        if outcome.nomination is not None:
            queue.nominate(updated, outcome.nomination)
        return pod

    def _victims(self, decision: Decision) -> list[Pod]:
        """The newest versions of the chosen victims, without those that are terminating already."""
        preemption = decision.preemption
        if preemption is None or preemption.node is None:
            return []
        chosen = preemption.candidates[preemption.node]
        known = (self._state.pod_named(key) for key in chosen.pods)
        return [
            pod
            for pod, uid in zip(known, chosen.uids, strict=True)
            if pod is not None and pod.uid == uid and not pod.terminating
        ]

    def _count_as_terminating(self, victim: Pod) -> None:
        """Mark a victim as terminating in the cache, so that no other attempt chooses it."""
        terminating = as_victim(victim, self._behaviour, self._clocks.wall())
        self._state.mark_victim(victim, terminating)

    # --- the requests ---------------------------------------------------------------------------

    async def _write(
        self, pod: Pod, outcome: FailedAttempt, result: AttemptResult, victims: Iterable[Pod]
    ) -> None:
        """Carry out the effects of an attempt, after those of the one before it."""
        before, ended = self._writing.get(pod.uid), asyncio.Event()
        self._writing[pod.uid] = ended
        try:
            if before is not None:
                await before.wait()
            await self._carry_out(pod, outcome, result, victims)
        finally:
            ended.set()
            if self._writing.get(pod.uid) is ended:
                del self._writing[pod.uid]

    async def _carry_out(
        self, pod: Pod, outcome: FailedAttempt, result: AttemptResult, victims: Iterable[Pod]
    ) -> None:
        """Write the outcome, then end nominations, then evict; the first failure ends the list.

        A victim that is not found was deleted, most likely. In case it was not, it counts as it is
        known, and the pod is attempted again.
        """
        remaining = deque(victims)
        missing: list[Pod] = []
        known = self._state.pod(pod)
        if known is None or known.spec.node_name:
            self._state.apply(self._state.keep_victims, tuple(remaining))
            return  # it was deleted or bound while the write waited for a worker
        begun, evicts, failed = self._clocks.timer(), bool(remaining), True
        preemption, name = result.decision.preemption, result.profile.scheduler_name
        text = f"{name}: preempting to accommodate a higher priority pod"
        try:
            await self._status.write(pod, outcome)
            await self._end_nominations(pod, result)
            while remaining:
                victim = remaining[0]
                if await self._evict(victim, text):
                    assert preemption is not None
                    assert preemption.node is not None
                    self._events.preempted(victim, pod, preemption.node)
                else:
                    missing.append(victim)
                remaining.popleft()
            if missing:
                self._state.apply(self._state.keep_victims, tuple(missing))
                self._retry(pod, result)
            failed = False
        except ApiError as error:
            self._state.apply(self._state.keep_victims, tuple(remaining))
            if error.status != _NOT_FOUND:
                logger.warning("pod %s: %s", pod.key, _with_steps(error))
            # A pod that is not found was deleted, most likely: its retry finds nothing to do.
            self._retry(pod, result, error.retry_after or 0.0)
        except Exception:
            # Without an end the victims would count as terminating for ever.
            logger.exception("writing the status of pod %s", pod.key)
            self._state.apply(self._state.keep_victims, (*missing, *remaining))
            self._retry(pod, result)
        finally:
            if evicts:
                self._report_evictions("pod", begun, failed=failed)

    def _retry(self, pod: Pod, result: AttemptResult, asked_seconds: float = 0.0) -> None:
        """Attempt the pod again after a pause; one that waits for its retry already keeps it."""
        if pod.uid in self._retries:
            return
        doubled = _FIRST_PAUSE * 2 ** min(result.number - 1, 10)
        pause = min(max(doubled, asked_seconds), _LONGEST_PAUSE)
        task = asyncio.get_running_loop().create_task(self._activate_after(pause, pod))
        self._retries[pod.uid] = task
        task.add_done_callback(lambda _: self._retries.pop(pod.uid, None))

    async def _activate_after(self, pause: float, pod: Pod) -> None:
        await self._clocks.sleep(pause)
        self._state.apply(self._state.activate, pod)

    async def _end_nominations(self, preemptor: Pod, result: AttemptResult) -> None:
        """Remove the nominations of pods of lower priority to the node that was chosen."""
        preemption = result.decision.preemption
        for uid, key in preemption.cleared if preemption is not None else ():
            other = self._state.pod_named(key)
            if other is not None and other.uid == uid != preemptor.uid:
                await _unless_deleted(self._status.nominate(other, ""), f"nomination of {key}")

    async def _evict(self, victim: Pod, text: str) -> bool:
        """Mark a victim with *text* and delete it; False if the API server does not know it."""
        if self._behaviour.marks_victims:
            marking = self._status.mark_victim(victim, text)
            if not await _unless_deleted(marking, f"condition of {victim.key}"):
                return False
        deleting = self._client.delete_pod(victim.namespace, victim.name, victim.metadata.uid)
        return await _unless_deleted(deleting, f"eviction of {victim.key}")


async def _unless_deleted(request: Awaitable[None], step: str) -> bool:
    """Send a request about another pod; False if the API server says that it does not exist.

    An error has a note of the *step* that failed.
    """
    try:
        await request
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return False
        error.add_note(step)
        raise
    return True


def _with_steps(error: ApiError) -> str:
    """The error with the steps that failed before it."""
    return ": ".join([*getattr(error, "__notes__", []), str(error)])


def nomination_of(decision: Decision, profile: Profile) -> str | None:
    """The nomination after a failed attempt: a node, "" when it ends, None when it is kept."""
    if decision.preemption is not None:
        return decision.preemption.nomination
    without_preemption = decision.error or profile.clears_nominations
    ends = profile.nominated_first and without_preemption and decision.held is None
    return "" if ends else None


def as_victim(pod: Pod, behaviour: Behaviour, now: float) -> Pod:
    """The pod as it will be once it is being deleted by this scheduler."""
    conditions = list(pod.status.conditions or ())
    if behaviour.marks_victims:
        conditions.append(EVICTED)
    metadata = replace(pod.metadata, deletion_timestamp=written(now))
    return replace(pod, metadata=metadata, status=replace(pod.status, conditions=conditions))
