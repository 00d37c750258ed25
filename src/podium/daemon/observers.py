"""What the loop tells those who watch it work: metrics, logs, the decision log, a comparison.

The loop calls every observer in turn, synchronously and in the order of events; an observer takes
note and returns at once. None of them can change what happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

#: Why pods come into a queue besides events of the cluster, in kube-scheduler's words.
POD_ADDED, ATTEMPT_FAILED = "UnschedulablePodAdd", "ScheduleAttemptFailure"
#: Stands in the list of rejecting plugins for all extenders, as in kube-scheduler.
EXTENDER = "Extender"


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt at one pod, just decided."""

    pod: Pod
    decision: Decision
    profile: Profile
    #: Which attempt it is for this pod, from 1.
    number: int
    #: Seconds since 1970 when it began, and how long deciding took.
    began: float
    seconds: float
    #: Since when the pod has been in the queue, in seconds since 1970.
    queued_at: float
    #: Name and duration of each step, where they were taken.
    steps: Sequence[tuple[str, float]] = ()

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected the pod; none when an error ended the attempt."""
        decision = self.decision
        if decision.error:
            return frozenset()
        names: set[str] = set()
        for code in decision.histogram:
            names.update(decision.verdict(code).plugins)
        if decision.extender_failed:
            names.add(EXTENDER)
        for refused in (decision.refused, decision.held):
            if refused is not None:
                names.update(refused.plugins)
        return frozenset(names)


class Observer:
    """Hears everything and, unless told otherwise, does nothing with it."""

    def attempted(self, attempted: Attempted) -> None:
        """An attempt was decided, whatever the outcome."""

    def bound(self, attempted: Attempted, node: str, seconds: float) -> None:
        """The API server took the binding, so many seconds after it was sent."""

    def bind_failed(self, attempted: Attempted, node: str, error: str) -> None:
        """The binding was refused, or nobody answered."""

    def evicting(self, attempted: Attempted, victims: Sequence[str]) -> None:
        """Pods (`namespace/name`) are about to be deleted to make room."""

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of the cluster came (no old one), changed, or went (no new one)."""

    def event_seen(self, label: str, moved: int) -> None:
        """Something happened in the cluster that woke so many pods."""

    def queued(self, queue: str, event: str, pods: int = 1) -> None:
        """Pods came into a queue (`active`, `backoff`, `unschedulable`, `gated`), and why."""
