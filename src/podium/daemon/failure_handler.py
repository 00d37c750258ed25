"""What follows when a pod was not placed: a condition, an event, another chance, room made.

Upstream: handleSchedulingFailure in schedule_one.go and preemption/executor.go, Kubernetes v1.36;
scheduler.go, v1.13.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from podium.daemon.clock import written
from podium.daemon.observers import ATTEMPT_FAILED
from podium.daemon.pod_status import EVICTED_BY, Outcome
from podium.engine.cycle.cycle import NO_NODES
from podium.kube.errors import ApiError
from podium.objects.kinds.pod import PodCondition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.behaviour import Manners
    from podium.daemon.cluster_state import Beliefs
    from podium.daemon.observers import Attempted, Observer
    from podium.daemon.pod_events import Announcer
    from podium.daemon.pod_status import StatusWriter
    from podium.daemon.worker_pool import Crew
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

logger = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
_GONE = 404


class DeletingClient(Protocol):
    """What is needed of a client here."""

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Evict a pod."""


class Failures:
    """Deals with pods that were not placed. Deciding goes on meanwhile."""

    def __init__(
        self,
        *,
        beliefs: Beliefs,
        client: DeletingClient,
        writer: StatusWriter,
        announcer: Announcer,
        crew: Crew,
        observers: Sequence[Observer],
        manners: Manners,
        now: Callable[[], float],
        acts: bool = True,
    ) -> None:
        """Unless it *acts*, nothing is written, said or promised: pods wait, and that is all."""
        self._acts = acts
        self._beliefs = beliefs
        self._client = client
        self._writer = writer
        self._announcer = announcer
        self._crew = crew
        self._observers = observers
        self._manners = manners
        self._now = now

    def undecided(self, turn: Turn, attempted: Attempted) -> None:
        """No node was found: say so, and make room if that was decided."""
        decision, profile = attempted.decision, attempted.profile
        is_error = bool(decision.error) and decision.error != NO_NODES
        outcome = Outcome(
            self._manners.error_reason if is_error else UNSCHEDULABLE,
            decision.message,
            nomination_of(decision, profile),
        )
        pod = self._requeue(turn, outcome, rejected_by=attempted.rejected_by)
        if pod is None or not self._acts:
            return
        victims = self._victims(decision)
        self._announcer.failed(pod, decision.message)
        for victim in victims:
            self._see_off(victim)
        for observer in self._observers if victims else ():
            observer.evicting(attempted, [victim.key for victim in victims])
        self._crew.do(partial(self._write, pod, outcome, attempted, victims))

    def unbound(self, turn: Turn, attempted: Attempted, error: str, *, volumes: bool) -> None:
        """A node was found but the binding came to nothing."""
        manners = self._manners
        text = manners.volumes_text if volumes else manners.binding_text
        message = text.format(error=error)
        outcome = Outcome(
            manners.volumes_reason if volumes else manners.binding_reason,
            message if manners.tells_binding_error else "",
            "" if attempted.profile.nominated_first else None,
        )
        pod = self._requeue(turn, outcome, rejected_by=(), late=True)
        if pod is not None:
            self._announcer.failed(pod, message)
            self._crew.do(partial(self._write, pod, outcome, attempted, ()))

    def _requeue(
        self, turn: Turn, outcome: Outcome, *, rejected_by: Iterable[str], late: bool = False
    ) -> Pod | None:
        """Back to the queue, unless the pod is gone or has a node; its newest version."""
        queue = self._beliefs.queue
        pod = self._beliefs.pod(turn.pod)
        if pod is None or pod.spec.node_name:
            queue.done(turn)
            return None
        noted = self._writer.noted(pod, outcome)
        cycle = queue.scheduling_cycle if late else None
        pool = queue.requeue(turn, noted, rejected_by=rejected_by, cycle=cycle)
        for observer in self._observers:
            observer.queued(pool, ATTEMPT_FAILED)
        if outcome.nomination is not None and self._acts:
            queue.nominate(noted, outcome.nomination)
        return pod

    def _victims(self, decision: Decision) -> list[Pod]:
        """The pods to evict, as they are now; not those that are leaving already."""
        preemption = decision.preemption
        if preemption is None or preemption.node is None:
            return []
        chosen = preemption.candidates[preemption.node]
        known = (self._beliefs.pod_named(key) for key in chosen.pods)
        return [
            pod
            for pod, uid in zip(known, chosen.uids, strict=True)
            if pod is not None and pod.uid == uid and not pod.terminating
        ]

    def _see_off(self, victim: Pod) -> None:
        """Believe at once that a victim is leaving, or it would be chosen again and again."""
        conditions = list(victim.status.conditions or ())
        if self._manners.marks_victims:
            mark = PodCondition(type="DisruptionTarget", status="True", reason=EVICTED_BY)
            conditions.append(mark)
        metadata = replace(victim.metadata, deletion_timestamp=written(self._now()))
        status = replace(victim.status, conditions=conditions)
        leaving = replace(victim, metadata=metadata, status=status)
        cache = self._beliefs.cache
        if cache.columns.pod(victim.uid) is not None and not cache.is_assumed(victim.uid):
            cache.update_pod(victim, leaving)

    async def _write(
        self, pod: Pod, outcome: Outcome, attempted: Attempted, victims: Iterable[Pod]
    ) -> None:
        """Tell the API server: the outcome, whose promise ends, and who has to go."""
        try:
            await self._writer.write(pod, outcome)
            await self._make_room(pod, attempted, victims)
        except ApiError as error:
            if error.status == _GONE:
                return  # the pod is gone; so are its troubles
            logger.warning("pod %s: %s", pod.key, error)
            for victim in victims:
                self._beliefs.do(self._take_back, victim)
            self._beliefs.do(self._try_again)

    async def _make_room(self, pod: Pod, attempted: Attempted, victims: Iterable[Pod]) -> None:
        preemption = attempted.decision.preemption
        if preemption is None:
            return
        for uid, key in preemption.cleared:
            other = self._beliefs.pod_named(key)
            if other is not None and other.uid == uid != pod.uid:
                await self._writer.nominate(other, "")
        for victim in victims:
            try:
                await self._evict(victim, pod, attempted)
            except ApiError as error:
                if error.status != _GONE:
                    raise

    async def _evict(self, victim: Pod, preemptor: Pod, attempted: Attempted) -> None:
        preemption = attempted.decision.preemption
        assert preemption is not None
        assert preemption.node is not None
        if self._manners.marks_victims:
            name = attempted.profile.scheduler_name
            text = f"{name}: preempting to accommodate a higher priority pod"
            await self._writer.mark_victim(victim, text)
        await self._client.delete_pod(victim.namespace, victim.name, victim.metadata.uid)
        self._announcer.preempted(victim, preemptor, preemption.node)

    def _take_back(self, victim: Pod) -> None:
        """The victim may stay after all, as far as we know."""
        known, cache = self._beliefs.pod(victim), self._beliefs.cache
        placed = cache.columns.pod(victim.uid) is not None
        if known is not None and placed and not cache.is_assumed(victim.uid):
            cache.update_pod(known, known)

    def _try_again(self) -> None:
        """Somebody may wait for room that nobody makes."""
        self._beliefs.queue.move_all()


def nomination_of(decision: Decision, profile: Profile) -> str | None:
    """What becomes of the pod's own promise: a node, "" when it ends, None when it stays."""
    if decision.preemption is not None:
        return decision.preemption.nomination
    helpless = decision.error or not profile.post_filters
    return "" if profile.nominated_first and helpless and decision.held is None else None
