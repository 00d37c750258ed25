"""kube-scheduler's metrics of pod groups and of their preemption; only with GenericWorkload.

Upstream: pkg/scheduler/metrics, Kubernetes v1.37, without those of placements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.group_decision import ERROR, SUCCESS
from podium.scheduler.state.observers import Observer
from podium.scheduler.telemetry.metric_types import Counters, Histograms, exponential

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client import Metric

    from podium.scheduler.state.observers import AttemptResult, GroupAttemptResult

_POD: Final = "pod"
_GROUP: Final = "podgroup"


class GroupMetrics(Observer):
    """Counts the cycles of pod groups, and what preemption does for groups and to them."""

    def __init__(self) -> None:
        #: What a victim (`namespace/name`) is evicted with: its group, itself if it is a single pod
        #: of a group, nothing if it belongs to none.
        self.unit_of: Callable[[str], str] = lambda _: ""
        milliseconds, victims = exponential(0.001, 2, 15), exponential(1, 2, 11)
        self._attempts = Counters(
            "scheduler_podgroup_schedule_attempts",
            "Number of attempts to schedule pod groups, by the result.",
            ("result", "profile"),
        )
        self._duration = Histograms(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Latency of an attempt to schedule a pod group in seconds.",
            milliseconds,
            ("result", "profile"),
        )
        self._algorithm = Histograms(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Latency of the algorithm that schedules a pod group in seconds.",
            milliseconds,
        )
        self._preemptions = Counters(
            "scheduler_workload_preemption_attempts",
            "Preemption attempts for pod groups, by the status.",
            ("result",),
        )
        self._victims = Histograms(
            "scheduler_workload_preemption_victims",
            "Number of pods that are evicted for a pod group.",
            victims,
        )
        self._disruptions = Histograms(
            "scheduler_preemption_workload_disruptions",
            "Number of pod groups, or single pods of pod groups, that are evicted together.",
            victims,
            ("preemptor",),
        )
        self._evaluation = Histograms(
            "scheduler_preemption_evaluation_duration_seconds",
            "Duration of the search for victims in seconds.",
            exponential(0.001, 2, 16),
            ("preemptor", "result"),
        )
        self._execution = Histograms(
            "scheduler_preemption_execution_duration_seconds",
            "Duration of the deletion of victims in seconds.",
            exponential(0.001, 2, 16),
            ("preemptor", "result"),
        )
        self._violations = Counters(
            "scheduler_preemption_pdb_violations",
            "Number of disruption budgets that preemption violates.",
            ("preemptor",),
        )

    def families(self) -> Iterator[Metric]:
        """All of them with their current values."""
        for counters in (self._attempts, self._preemptions, self._violations):
            yield counters.family()
        for histograms in (
            self._duration,
            self._algorithm,
            self._victims,
            self._disruptions,
            self._evaluation,
            self._execution,
        ):
            yield histograms.family()

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """Count a cycle, and the search for victims if there was one."""
        found, profile = result.decision, result.profile.scheduler_name
        outcome = "waiting_on_preemption" if found.waits_for_preemption else "unschedulable"
        outcome = {SUCCESS: "scheduled", ERROR: "error"}.get(found.code, outcome)
        self._attempts.add(outcome, profile)
        self._duration.at(outcome, profile).observe(result.seconds)
        if found.attempt is not None:
            self._algorithm.at().observe(result.seconds)
        if found.preemption_code:
            self._preemptions.add(found.preemption_code)
            self._evaluation.at(_GROUP, found.preemption_code).observe(found.preemption_seconds)
        preemption = found.preemption
        if preemption is not None and not preemption.ongoing:
            self._victims.at().observe(len(preemption.pods))
            self._disrupted(_GROUP, preemption.pods, preemption.violations)

    def attempted(self, result: AttemptResult) -> None:
        """Observe the search for victims of a single pod."""
        preemption = result.decision.preemption
        seconds = dict(result.steps).get("Preemption done")
        if preemption is not None and seconds is not None:
            status = "Success" if preemption.node else "Unschedulable"
            self._evaluation.at(_POD, status).observe(seconds)

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Count what is evicted for a single pod."""
        preemption = result.decision.preemption
        if preemption is not None and preemption.node is not None:
            found = preemption.candidates[preemption.node]
            self._disrupted(_POD, victims, found.violations)

    def _disrupted(self, preemptor: str, victims: Iterable[str], violations: int) -> None:
        units = {unit for each in victims if (unit := self.unit_of(each))}
        if units:
            self._disruptions.at(preemptor).observe(len(units))
        if violations:
            self._violations.add(preemptor, count=violations)

    def eviction_ended(self, preemptor: str, seconds: float, *, failed: bool) -> None:
        """Observe how long it took to delete victims."""
        self._execution.at(preemptor, "error" if failed else "success").observe(seconds)
