"""What the scheduling loop reports to metrics, logs, the decision log and the history.

The loop calls every observer in turn, synchronously and in the order of events. An observer only
records: it returns at once and cannot change what the scheduler does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod

#: Why pods enter a queue besides events of the cluster, in kube-scheduler's words.
POD_ADDED, ATTEMPT_FAILED = "UnschedulablePodAdd", "ScheduleAttemptFailure"


class AttemptResult(msgspec.Struct, frozen=True):
    """One scheduling attempt at one pod, with its decision and timing."""

    pod: Pod
    decision: Decision
    profile: Profile
    #: Which attempt it is for this pod, from 1.
    number: int
    #: When the attempt began, in seconds since 1970, and how long deciding took.
    began: float
    seconds: float
    #: When the pod entered the queue, in seconds since 1970.
    queued_at: float
    #: Name and duration of each step, where steps were timed.
    steps: Sequence[tuple[str, float]] = ()
    #: The cycle of its pod group that the attempt is part of.
    group: GroupDecision | None = None

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected the pod; none when an error ended the attempt."""
        return self.decision.rejected_by


class GroupAttemptResult(msgspec.Struct, frozen=True):
    """One cycle of one pod group, with what became of each of its pods."""

    decision: GroupDecision
    profile: Profile
    #: Which attempt it is for this group, from 1.
    number: int
    #: When the cycle began, in seconds since 1970, and how long deciding took.
    began: float
    seconds: float
    members: tuple[AttemptResult, ...]


def acting(observers: Iterable[Observer], method: str) -> tuple[Observer, ...]:
    """The observers that do something when *method* is called.

    Most of them look at few of the reports, and reports come thousands of times a second.
    """
    nothing = getattr(Observer, method)
    return tuple(each for each in observers if getattr(type(each), method) is not nothing)


class Observer:
    """Base of all observers: every method does nothing unless a subclass overrides it."""

    def attempted(self, result: AttemptResult) -> None:
        """An attempt ended with a decision, whatever the outcome."""

    def group_attempting(self) -> None:
        """A pod group is about to be decided about."""

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """The cycle of a pod group ended; `attempted` is called for each of its pods after this."""

    def crashed(self, pod: Pod) -> None:
        """Deciding about the pod raised an exception; the attempt ends with an error."""

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:
        """The API server accepted the binding, *seconds* after it was sent."""

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        """The binding was refused, or its volumes could not be bound."""

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Pods (`namespace/name`) are about to be deleted in favour of the attempt's pod."""

    def group_evicting(self, group: str, victims: Sequence[Pod]) -> None:
        """Pods are about to be deleted in favour of a pod group (`namespace/name`)."""

    def eviction_ended(self, preemptor: str, seconds: float, *, failed: bool) -> None:
        """The victims of a `pod` or a `podgroup` were deleted, or could not be."""

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod was added (no old one), changed, or was deleted (no new one)."""

    def object_seen(self, kind: str, old: Object | None, new: Object | None) -> None:
        """An object that is no pod was added, changed or deleted; the cache follows after this."""

    def claim_made(self, pod: str, pod_uid: str, uid: str) -> None:
        """A claim with this *uid* was made for the extended resources of a pod."""

    def claim_written(self, claim: str, uid: str, version: str) -> None:
        """The API server has answered that a claim has devices since this *version*.

        An empty version says that the claim was deleted.
        """

    def forgotten(self, pod: Pod) -> None:
        """A pod that counted on a node without being bound does not any more."""

    def victims_kept(self, victims: Sequence[Pod]) -> None:
        """Pods that were about to be deleted could not be, and count as running again."""

    def event_seen(self, label: str, moved: int) -> None:
        """A cluster event moved that many pods, at least one, out of the unschedulable ones."""

    def queued(self, queue: str, event: str, pods: int = 1) -> None:
        """Pods entered the active, backoff, unschedulable or gated *queue* because of *event*."""

    def group_queued(self, queue: str, event: str, pods: int, *, enters: bool) -> None:
        """Pods of a group entered a *queue*; *enters*: the group was not in it before."""
