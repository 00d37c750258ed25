"""Writes what a scheduler sees and decides to a history.

`HistoryRecorder` is an observer. It notes every change of an object before the cache follows it,
and every decision with the nominations that it saw. A replay applies the same changes in the same
order. Records are written in batches; `flush` runs at intervals and starts new segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from podium.past.format.records import (
    Bound,
    ClaimMade,
    ClaimWritten,
    Decided,
    Evicting,
    Forgotten,
    GroupDecided,
    Kept,
    Nominated,
    Record,
)
from podium.past.format.writing import Unwritten
from podium.past.recorder.checkpoint import can_be_written, checkpoint
from podium.past.recorder.digest import digest, group_digest, matrix
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.past.format.writing import HistoryWriter
    from podium.scheduler.scheduler import Scheduler
    from podium.scheduler.state.observers import AttemptResult, GroupAttemptResult

Nominations = dict[str, tuple[tuple[str, str], ...]]


class _Attempted(Unwritten, frozen=True):
    """A decision, with what was known when it was made. Decisions do not change any more."""

    at: float
    result: AttemptResult
    #: The newest version of the pod.
    known: Pod | None
    #: How many pods each pool of the queue held.
    queues: tuple[int, int, int, int]
    #: Whether the decision does not follow from the history.
    extenders: bool

    def record(self) -> Decided:
        result, known = self.result, self.known
        pod, decision = result.pod, result.decision
        nominated, whole = None, None
        if known is not None and known is not pod:
            if known.spec != pod.spec or known.metadata != pod.metadata:
                whole = cast("dict[str, Any]", pod)  # it is written like that
            elif known.status.nominated_node_name != pod.status.nominated_node_name:
                nominated = pod.status.nominated_node_name
        preemption = decision.preemption
        node = preemption.node if preemption is not None else None
        victims: tuple[str, ...] = ()
        if preemption is not None and node is not None:
            victims = preemption.candidates[node].pods
        return Decided(
            self.at,
            decision.pod,
            decision.uid,
            result.number,
            result.profile.scheduler_name,
            decision.node,
            digest(decision),
            matrix(decision),
            decision.nodes,
            decision.feasible_count,
            decision.tied,
            decision.cursor,
            decision.consumed,
            decision.dropped,
            bool(decision.reservations),
            self.extenders,
            result.seconds,
            result.queued_at,
            self.queues,
            nominated,
            whole,
            node or "",
            victims,
            decision.decided_at,
            decision.differences,
            "" if result.group is None else result.group.group,
        )


class HistoryRecorder(Observer):
    """Records one scheduler, from before its informers have listed anything."""

    def __init__(
        self, writer: HistoryWriter, clock: Callable[[], float], *, with_decisions: bool = True
    ) -> None:
        """Write to *writer*, with times of the scheduler's *clock*.

        Decisions that place nothing, those of a shadow, are left out (*with_decisions*).
        """
        self._writer: HistoryWriter | None = writer
        self._with_decisions = with_decisions
        self._clock = clock
        #: Set by the host, once there is a scheduler.
        self.scheduler: Scheduler | None = None
        self._nominations_version = 0
        self._nominated: Nominations = {}
        #: What the next header has to say, while the last one says something else.
        self._about: dict[str, Any] | None = None

    def close(self) -> None:
        """Write everything, and end the recording."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def flush(self) -> None:
        """Write what was collected, and start a new segment if the last one has become long."""
        writer, scheduler = self._writer, self.scheduler
        if writer is None:
            return
        writer.flush()
        wanted = writer.wants_checkpoint or (self._about is not None and not writer.failure)
        if scheduler is not None and wanted:
            state = scheduler.state
            if can_be_written(state):
                now = self._clock()
                records = checkpoint(state, scheduler.ties, writer, now)
                writer.start_segment(records, self._about)
                self._about = None
                self._nominated = self._nominations()
                self._nominations_version = state.queue.nominations_version

    def reconfigured(self, profile: dict[str, Any]) -> None:
        """Start a segment for other profiles, in the form in which a snapshot keeps them.

        Until that is possible decisions are recorded as ones that cannot be made again.
        """
        self._about = {"profile": profile}
        self.flush()

    # Objects ----------------------------------------------------------------------------------

    def object_seen(self, kind: str, old: Object | None, new: Object | None) -> None:
        """Write a change."""
        writer = self._writer
        if writer is not None:
            writer.change(self._clock(), kind, old, new)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Write a change of a pod."""
        self.object_seen("Pod", old, new)

    # Decisions --------------------------------------------------------------------------------

    def attempted(self, result: AttemptResult) -> None:
        """Write the decision, after the nominations that it saw; not that of a pod of a group."""
        writer, scheduler = self._deciding()
        if writer is None or scheduler is None or result.group is not None:
            return
        now = self._clock()
        self._write_nominations(writer, scheduler, now)
        writer.write(self._attempted(scheduler, result, now))

    def group_attempting(self) -> None:
        """Write the nominations that the cycle of a group begins with."""
        writer, scheduler = self._deciding()
        if writer is not None and scheduler is not None:
            self._write_nominations(writer, scheduler, self._clock())

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """Write the cycle of a group, with the decisions about its pods."""
        writer, scheduler = self._deciding()
        if writer is None or scheduler is None:
            return
        now, found = self._clock(), result.decision
        # The record is made at once: permits add to the decisions afterwards.
        members = (self._attempted(scheduler, each, now).record() for each in result.members)
        writer.write(
            GroupDecided(
                now,
                found.group,
                found.uid,
                result.number,
                found.code,
                group_digest(found),
                tuple(members),
                tuple((each.tied, each.consumed, each.dropped) for each in found.searches),
                self._is_unrepeatable(result),
                found.decided_at,
            )
        )

    def _deciding(self) -> tuple[HistoryWriter | None, Scheduler | None]:
        """Where decisions are written, and who makes them; None where none are written."""
        return (self._writer, self.scheduler) if self._with_decisions else (None, None)

    def _attempted(self, scheduler: Scheduler, result: AttemptResult, now: float) -> _Attempted:
        return _Attempted(
            now,
            result,
            scheduler.state.pod(result.pod),
            scheduler.queue.lengths(),
            self._is_unrepeatable(result),
        )

    def _is_unrepeatable(self, result: AttemptResult | GroupAttemptResult) -> bool:
        return bool(result.profile.extenders) or self._about is not None

    def _nominations(self) -> Nominations:
        assert self.scheduler is not None
        queue = self.scheduler.queue
        return {
            node: tuple((pod.key, pod.uid) for pod in queue.nominated_on(node))
            for node in queue.nominated_nodes()
        }

    def _write_nominations(self, writer: HistoryWriter, scheduler: Scheduler, now: float) -> None:
        version = scheduler.queue.nominations_version
        if version == self._nominations_version:
            return
        self._nominations_version = version
        before, after = self._nominated, self._nominations()
        self._nominated = after
        changes = {node: list(pods) for node, pods in after.items() if before.get(node) != pods}
        changes.update({node: [] for node in before if node not in after})
        if changes or list(before) != list(after):
            kept = [node for node in before if node in after]
            usual = [*kept, *(node for node in after if node not in before)]
            order = None if usual == list(after) else tuple(after)
            writer.write(Nominated(now, changes, order))

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:  # noqa: ARG002
        """Write that the binding was accepted."""
        self._write_bound(result, node, "")

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        """Write that the binding was refused."""
        self._write_bound(result, node, error)

    def _write_bound(self, result: AttemptResult, node: str, error: str) -> None:
        if self._writer is not None and error:
            self._write(Bound(self._clock(), result.pod.key, result.pod.uid, node, error))

    def forgotten(self, pod: Pod) -> None:
        """Write that a pod does not count on its node any more."""
        self._write(Forgotten(self._clock(), pod.key, pod.uid))

    def claim_made(self, pod: str, pod_uid: str, uid: str) -> None:
        """Write which claim has the devices that were reserved for a pod."""
        self._write(ClaimMade(self._clock(), pod, pod_uid, uid))

    def claim_written(self, claim: str, uid: str, version: str) -> None:
        """Write that devices count until a watch reports this version of their claim."""
        self._write(ClaimWritten(self._clock(), claim, uid, version))

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Write which pods count as terminating."""
        self._write(Evicting(self._clock(), result.pod.key, tuple(victims)))

    def group_evicting(self, group: str, victims: Sequence[Pod]) -> None:
        """Write which pods count as terminating."""
        self._write(Evicting(self._clock(), "", tuple(each.key for each in victims), group))

    def victims_kept(self, victims: Sequence[Pod]) -> None:
        """Write which pods count as running again."""
        self._write(Kept(self._clock(), tuple(victim.key for victim in victims)))

    def _write(self, record: Record) -> None:
        writer = self._writer
        if writer is not None:
            writer.write(record)
