"""kube-scheduler's metrics for Prometheus, with the same names, labels and buckets.

Those of pod groups and of their preemption exist only with GenericWorkload.

Upstream: pkg/scheduler/metrics, Kubernetes v1.36, v1.37 for pod groups. Metrics of parts that
Podium does not have (permit plugins, batching, placements, goroutines of preemption) are not there.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from podium.engine.framework.group_decision import ERROR as GROUP_ERROR
from podium.engine.framework.group_decision import SUCCESS
from podium.engine.rules.resources.shared import lacking_resource
from podium.scheduler.state.observers import Observer
from podium.scheduler.telemetry.metric_types import (
    Counters,
    Histograms,
    exponential,
    gauges,
    metrics_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client import CollectorRegistry, Metric

    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.observers import AttemptResult, GroupAttemptResult
    from podium.scheduler.telemetry.timings import RuleTimings

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
#: The type of an entity that is a single pod.
_POD: Final = "pod"
_GROUP: Final = "podgroup"
PENDING: Final = ("active", "backoff", "unschedulable", "gated")
#: Pods with this many attempts or more are counted together.
MANY_ATTEMPTS: Final = 15
#: So many reasons of pending pods are series of their own; all others are counted as one.
MOST_REASONS: Final = 50
OTHER_REASONS: Final = "other"
VERIFIED: Final = (
    "podium_verified_decisions",
    "Decisions that were made twice, from kept answers and without any.",
)
DIFFERING: Final = (
    "podium_differing_decisions",
    "Verified decisions that kept answers gave otherwise; the decision without any was used.",
)
_ATTEMPTS: Final = tuple(str(number) for number in range(MANY_ATTEMPTS))


def _nothing() -> Mapping[str, int]:
    return {}


class _Unschedulable(NamedTuple):
    """What the last attempt at a pod that fits nowhere said."""

    profile: str
    plugins: frozenset[str]
    reasons: frozenset[str]


class Metrics(Observer):
    """Counts what the scheduler reports, and formats it when the metrics are read.

    Some are read from the scheduler at that moment: `pending` (pods by queue), `groups` (pod groups
    by queue), `cache_size` (`nodes`, `pods`, `assumed_pods`), `binding` (bindings under way) and
    `verified` (decisions that were made twice, and those of them that differed).
    """

    def __init__(
        self,
        timings: RuleTimings | None = None,
        clock: Callable[[], float] = time.time,
        *,
        counts_entities: bool = False,
    ) -> None:
        """*counts_entities*: queued entities are counted beside pods, as from v1.37 on."""
        self._counts_entities = counts_entities
        self._timings = timings
        self._clock = clock
        self.pending: Callable[[], Mapping[str, int]] = _nothing
        #: Groups by queue, and how many pods these have.
        self.groups: Callable[[], Mapping[str, tuple[int, int]]] = dict
        self.cache_size: Callable[[], Mapping[str, int]] = _nothing
        self.binding: Callable[[], int] = lambda: 0
        self.verified: Callable[[], tuple[int, int]] = lambda: (0, 0)
        #: Called for further metrics.
        self.more: list[Callable[[], Iterator[Metric]]] = []
        #: The unschedulable pods by uid.
        self._unschedulable: dict[str, _Unschedulable] = {}
        #: When they entered the queue before their first attempt.
        self._since: dict[str, float] = {}
        self._define()

    def _define(self) -> None:
        milliseconds = exponential(0.001, 2, 15)
        self._attempts = Counters(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could "
            "not be scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
        )
        self._duration = Histograms(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            milliseconds,
            ("result", "profile"),
        )
        self._algorithm = Histograms(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            milliseconds,
        )
        self._victims = Histograms(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            exponential(1, 2, 7),
        )
        self._preemptions = Counters(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now"
        )
        self._sli = Histograms(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
            "queue and might involve multiple scheduling attempts.",
            exponential(0.01, 2, 20),
            ("attempts",),
        )
        self._tries = Histograms(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential(1, 2, 5),
        )
        self._points = Histograms(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            exponential(0.0001, 2, 12),
            ("extension_point", "status", "profile"),
        )
        self._plugins = Histograms(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            exponential(0.00001, 1.5, 20),
            ("plugin", "extension_point", "status"),
        )
        self._incoming = Counters(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self._entities = Counters(
            "scheduler_queue_incoming_entities",
            "Number of scheduling entities added to scheduling queues by event, queue type, and "
            "entity type. Entity types are either 'pod' (for individual pods that are not members "
            "of any podgroup) or 'podgroup'.",
            ("queue", "event", "type"),
        )
        self._crashes = Counters(
            "podium_decision_crashes",
            "Number of attempts that ended with an unforeseen exception.",
        )

    # Reports of the scheduler ---------------------------------------------------------------

    def crashed(self, pod: Pod) -> None:  # noqa: ARG002
        """Count an exception while a pod was decided."""
        self._crashes.add()

    def attempted(self, result: AttemptResult) -> None:
        """Count a failed attempt; one with a node has succeeded only when it is bound."""
        decision, profile = result.decision, result.profile.scheduler_name
        if decision.held is not None:
            return
        self._algorithm.at().observe(result.seconds)
        self._unschedulable.pop(decision.uid, None)
        if decision.preemption is not None:
            self._preempted(result)
        if decision.node is None:
            self._count(ERROR if decision.error else UNSCHEDULABLE, profile, result.seconds)
            self._since.setdefault(decision.uid, _queued_at(result))
            if not decision.error:
                self._unschedulable[decision.uid] = _Unschedulable(
                    profile, result.rejected_by, _reasons(decision)
                )
        spent = self._timings.end_attempt() if self._timings is not None else None
        if spent is not None:
            self._measured(result, spent)

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:  # noqa: ARG002
        """Count a success."""
        profile, number = result.profile.scheduler_name, result.number
        self._count(SCHEDULED, profile, result.seconds + seconds)
        self._tries.at().observe(number)
        since = self._since.pop(result.decision.uid, None)
        waited = max(0.0, self._clock() - (_queued_at(result) if since is None else since))
        label = _ATTEMPTS[number] if number < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
        self._sli.at(label).observe(waited)
        self._points.at("Bind", "Success", profile).observe(seconds)

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:  # noqa: ARG002
        """Count an error."""
        self._count(ERROR, result.profile.scheduler_name, result.seconds)
        self._since.setdefault(result.decision.uid, _queued_at(result))

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Drop a pod that was deleted or bound from the unschedulable ones."""
        if self._unschedulable and old is not None and (new is None or new.spec.node_name):
            self._unschedulable.pop(old.uid, None)
        if self._since and old is not None and new is None:
            self._since.pop(old.uid, None)

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:  # noqa: ARG002
        """Count the victims."""
        self._victims.at().observe(len(victims))

    def queued(self, queue: str, event: str, pods: int = 1) -> None:
        """Count pods that entered a queue."""
        self._incoming.add(queue, event, count=pods)
        self._entities.add(queue, event, _POD, count=pods)

    def group_queued(self, queue: str, event: str, pods: int, *, enters: bool) -> None:
        """Count pods of a group that entered a queue, and the group."""
        self._incoming.add(queue, event, count=pods)
        if enters and queue in PENDING:
            self._entities.add(queue, event, _GROUP)

    def event_seen(self, label: str, moved: int) -> None:
        """Count the pods that an event moved, without telling active and backoff apart."""
        if moved:
            self._incoming.add("active", label, count=moved)
            self._entities.add("active", label, _POD, count=moved)

    def _count(self, outcome: str, profile: str, seconds: float) -> None:
        self._attempts.add(outcome, profile)
        self._duration.at(outcome, profile).observe(seconds)

    def _preempted(self, result: AttemptResult) -> None:
        self._preemptions.add()
        preemption = result.decision.preemption
        status = "Success" if preemption and preemption.node else "Unschedulable"
        seconds = dict(result.steps).get("Preemption done")
        if seconds is not None:
            point = self._points.at("PostFilter", status, result.profile.scheduler_name)
            point.observe(seconds)

    def _measured(self, result: AttemptResult, spent: Mapping[tuple[str, str], float]) -> None:
        decision = result.decision
        if decision.error:
            status = "Error"
        else:
            status = "Success" if decision.node is not None else "Unschedulable"
        by_point: dict[str, float] = {}
        for (rule, point), seconds in spent.items():
            self._plugins.at(rule, point, status).observe(seconds)
            by_point[point] = by_point.get(point, 0.0) + seconds
        for point, seconds in by_point.items():
            self._points.at(point, status, result.profile.scheduler_name).observe(seconds)

    # Reading --------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """All metrics with their current values."""
        for each in metrics_of(self):
            if each is not self._entities or self._counts_entities:
                yield each.family()
        yield from self._gauges()
        yield from self._verifications()
        for more in self.more:
            yield from more()

    def _gauges(self) -> Iterator[Metric]:
        pending = self.pending()
        yield gauges(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; "
            "'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in "
            "unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the "
            "number of unschedulable pods that the scheduler never attempted to schedule because "
            "they are gated; 'incomplete' is the number of pods whose pod group is missing; "
            "'pending' is the number of pods that came while their pod group was tried.",
            ("queue",),
            {(queue,): pending.get(queue, 0) for queue in dict.fromkeys((*PENDING, *pending))},
        )
        if self._counts_entities:
            groups = self.groups()
            entities: dict[tuple[str, ...], float] = {}
            for queue in PENDING:
                count, pods = groups.get(queue, (0, 0))
                entities[queue, _POD] = pending.get(queue, 0) - pods
                if groups:
                    entities[queue, _GROUP] = count
            yield gauges(
                "scheduler_queued_entities",
                "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for "
                "individual pods that are not members of any podgroup) by the queue type.",
                ("queue", "type"),
                entities,
            )
        yield gauges(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
            {(kind,): count for kind, count in self.cache_size().items()},
        )
        yield gauges(
            "scheduler_goroutines",
            "Number of running goroutines split by the work they do such as binding.",
            ("operation",),
            {("binding",): self.binding()},
        )
        counted: Counter[tuple[str, ...]] = Counter()
        for each in self._unschedulable.values():
            counted.update((plugin, each.profile) for plugin in each.plugins)
        yield gauges(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment the "
            "gauge for all plugins that caused it to not schedule and so this metric have meaning "
            "only when broken down by plugin.",
            ("plugin", "profile"),
            dict(counted),
        )
        yield from self._pending_by_reason()

    def _verifications(self) -> Iterator[Metric]:
        """Decisions that were made from kept answers and without any."""
        compared, differing = Counters(*VERIFIED), Counters(*DIFFERING)
        for counters, count in zip((compared, differing), self.verified(), strict=True):
            counters.add(count=count)
            yield counters.family()

    def _pending_by_reason(self) -> Iterator[Metric]:
        """Unschedulable pods by what their last attempt said."""
        reasons: Counter[str] = Counter()
        resources: Counter[str] = Counter()
        for each in self._unschedulable.values():
            reasons.update(each.reasons)
            resources.update(filter(None, map(lacking_resource, each.reasons)))
        shown = dict(reasons.most_common(MOST_REASONS))
        if len(reasons) > len(shown):
            shown[OTHER_REASONS] = reasons.total() - sum(shown.values())
        yield gauges(
            "podium_pending_pods",
            "Unschedulable pods by the reasons of their last attempt. A pod counts once for each "
            "reason.",
            ("reason",),
            {(reason,): count for reason, count in shown.items()},
        )
        yield gauges(
            "podium_pending_pods_lacking",
            "Unschedulable pods by the resource that some node has too little of.",
            ("resource",),
            {(resource,): count for resource, count in resources.items()},
        )

    @cached_property
    def _registry(self) -> CollectorRegistry:
        """The metrics, and those of this process."""
        import prometheus_client as client  # noqa: PLC0415  it takes long

        registry = client.CollectorRegistry()
        registry.register(self)
        for collector in (
            client.ProcessCollector,
            client.PlatformCollector,
            client.GCCollector,
        ):
            collector(registry=registry)
        return registry

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics as text in a form that the reader accepts, and its content type."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415

        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def _reasons(decision: Decision) -> frozenset[str]:
    """The reasons of all nodes, or that of the rule that refused the pod before any node."""
    if decision.refused is not None:
        return frozenset((decision.refused.reason,))
    return frozenset(decision.reasons)


def _queued_at(result: AttemptResult) -> float:
    """When the pod entered the queue; if that is not known, when the attempt began."""
    return result.queued_at or result.began


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
        return (each.family() for each in metrics_of(self))

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """Count a cycle, and the search for victims if there was one."""
        found, profile = result.decision, result.profile.scheduler_name
        outcome = "waiting_on_preemption" if found.waits_for_preemption else "unschedulable"
        outcome = {SUCCESS: "scheduled", GROUP_ERROR: "error"}.get(found.code, outcome)
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
