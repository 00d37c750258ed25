"""kube-scheduler's metrics for Prometheus, with the same names, labels and buckets.

Upstream: pkg/scheduler/metrics, Kubernetes v1.36. Metrics of parts that Podium does not have
(permit plugins, batching, goroutines of preemption) are not there.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podium.daemon.metric_types import Counters, Histograms, exponential, gauges
from podium.daemon.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prometheus_client import CollectorRegistry, Metric

    from podium.daemon.observers import AttemptResult
    from podium.daemon.rule_timings import RuleTimings
    from podium.objects.kinds.pod import Pod

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
PENDING: Final = ("active", "backoff", "unschedulable", "gated")
#: Pods with this many attempts or more are counted together.
MANY_ATTEMPTS: Final = 15
_ATTEMPTS: Final = tuple(str(number) for number in range(MANY_ATTEMPTS))


def _nothing() -> Mapping[str, int]:
    return {}


class Metrics(Observer):
    """Counts what the scheduler reports, and formats it when the metrics are read.

    Gauges are read from the scheduler at that moment: `pending` (pods by queue), `cache_size`
    (`nodes`, `pods`, `assumed_pods`) and `binding` (bindings under way).
    """

    def __init__(
        self, timings: RuleTimings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._timings = timings
        self._clock = clock
        self.pending: Callable[[], Mapping[str, int]] = _nothing
        self.cache_size: Callable[[], Mapping[str, int]] = _nothing
        self.binding: Callable[[], int] = lambda: 0
        #: Called for further metrics.
        self.more: list[Callable[[], Iterator[Metric]]] = []
        #: Unschedulable pods: uid -> profile and the plugins that rejected the pod.
        self._unschedulable: dict[str, tuple[str, frozenset[str]]] = {}
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

    # Reports of the scheduler ---------------------------------------------------------------

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
                self._unschedulable[decision.uid] = (profile, result.rejected_by)
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

    def event_seen(self, label: str, moved: int) -> None:
        """Count the pods that an event moved, without telling active and backoff apart."""
        if moved:
            self._incoming.add("active", label, count=moved)

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
        for counters in (self._attempts, self._preemptions, self._incoming):
            yield counters.family()
        for histograms in (
            self._duration,
            self._algorithm,
            self._victims,
            self._sli,
            self._tries,
            self._points,
            self._plugins,
        ):
            yield histograms.family()
        yield from self._gauges()
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
            "they are gated.",
            ("queue",),
            {(queue,): pending.get(queue, 0) for queue in PENDING},
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
        for profile, rules in self._unschedulable.values():
            counted.update((rule, profile) for rule in rules)
        yield gauges(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment the "
            "gauge for all plugins that caused it to not schedule and so this metric have meaning "
            "only when broken down by plugin.",
            ("plugin", "profile"),
            dict(counted),
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


def _queued_at(result: AttemptResult) -> float:
    """When the pod entered the queue; if that is not known, when the attempt began."""
    return result.queued_at or result.began
