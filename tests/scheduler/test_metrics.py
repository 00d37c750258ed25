"""What Prometheus reads from a scheduler."""

from __future__ import annotations

import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from builders import node, nodes, pod, profile, simulation, taint
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.scheduler.telemetry.metrics import MOST_REASONS, Metrics
from podium.scheduler.telemetry.timings import RuleTimings
from scheduler.attempts import NOON, attempted, tried

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(metrics: Metrics) -> Samples:
    text, _ = metrics.exposition()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[f"scheduler_{name}", tuple(sorted(labels.items()))]


def test_an_attempt_has_succeeded_when_it_is_bound_and_not_before() -> None:
    metrics = Metrics(clock=lambda: NOON + 3)
    world = simulation(node("n1"), node("n2"))
    told = tried(world, pod())

    metrics.attempted(told)
    before = samples(metrics)
    metrics.bound(told, "n1", 0.01)

    assert not any(name == "scheduler_schedule_attempts_total" for name, _ in before)
    labels = {"result": "scheduled", "profile": "default-scheduler"}
    assert value(metrics, "schedule_attempts_total", **labels) == 1
    assert value(metrics, "scheduling_attempt_duration_seconds_sum", **labels) == pytest.approx(
        0.012
    )
    assert value(metrics, "scheduling_algorithm_duration_seconds_count") == 1
    assert value(metrics, "pod_scheduling_attempts_sum") == 1
    assert value(metrics, "pod_scheduling_sli_duration_seconds_sum", attempts="1") == 4


def test_a_pod_that_fits_nowhere_is_counted_by_the_rules_that_turned_it_down() -> None:
    metrics = Metrics()
    world = simulation(node("n1", cpu="1"), node("n2", unschedulable=True))
    wanted = pod(requests={"cpu": "4"})
    metrics.attempted(tried(world, wanted))

    labels = {"result": "unschedulable", "profile": "default-scheduler"}
    assert value(metrics, "schedule_attempts_total", **labels) == 1
    turned_down = {
        dict(labels)["plugin"]: count
        for (name, labels), count in samples(metrics).items()
        if name == "scheduler_unschedulable_pods"
    }
    assert turned_down == {"GeneralPredicates": 1, "CheckNodeUnschedulable": 1}

    metrics.pod_seen(wanted, None)

    assert not any(name == "scheduler_unschedulable_pods" for name, _ in samples(metrics))


def test_pods_that_fit_nowhere_are_counted_by_reason_and_by_resource() -> None:
    metrics = Metrics()
    world = simulation(node("n1", cpu="1"), node("n2", unschedulable=True))
    wanted = [pod(name, requests={"cpu": "4"}) for name in ("a", "b")]
    for each in wanted:
        metrics.attempted(tried(world, each))

    found = samples(metrics)
    assert found["podium_pending_pods", (("reason", "Insufficient cpu"),)] == 2
    assert found["podium_pending_pods", (("reason", "node(s) were unschedulable"),)] == 2
    assert found["podium_pending_pods_lacking", (("resource", "cpu"),)] == 2

    metrics.pod_seen(wanted[0], None)

    assert samples(metrics)["podium_pending_pods_lacking", (("resource", "cpu"),)] == 1


def test_rare_reasons_are_counted_together() -> None:
    metrics = Metrics()
    labels = {f"example.com/{number}": "1" for number in range(MOST_REASONS + 5)}
    world = simulation(node("n1"))
    for name in labels:
        wanted = pod(name.replace("/", "-"), requests={name: "1"})
        metrics.attempted(tried(world, wanted))

    found = samples(metrics)
    reasons = [labels for name, labels in found if name == "podium_pending_pods"]
    assert len(reasons) == MOST_REASONS + 1
    assert found["podium_pending_pods", (("reason", "other"),)] == 5


def test_every_predicate_that_rejected_a_node_is_counted_where_all_are_asked() -> None:
    """With alwaysCheckAllPredicates one verdict holds the reasons of several predicates."""
    policy = {"kind": "Policy", "apiVersion": "v1", "alwaysCheckAllPredicates": True}
    all_of_them = from_policy(policy, Options())
    first_only = from_policy(policy | {"alwaysCheckAllPredicates": False}, Options())
    wanted = pod(requests={"cpu": "4"}, node_selector={"disk": "ssd"})
    full = node("n1", cpu="1", unschedulable=True, taints=[taint("gpu")])

    def counted(profile: Profile) -> dict[str, float]:
        metrics = Metrics()
        metrics.attempted(tried(simulation(full, profile=profile), wanted))
        return {
            dict(labels)["plugin"]: count
            for (name, labels), count in samples(metrics).items()
            if name == "scheduler_unschedulable_pods"
        }

    assert counted(first_only) == {"CheckNodeUnschedulable": 1}
    assert counted(all_of_them) == {
        "CheckNodeUnschedulable": 1,
        "GeneralPredicates": 1,
        "PodToleratesNodeTaints": 1,
    }


def test_a_failed_binding_is_an_error() -> None:
    metrics = Metrics()
    told = tried(simulation(node("n1")), pod())
    metrics.attempted(told)
    metrics.bind_failed(told, "n1", "conflict")

    labels = {"result": "error", "profile": "default-scheduler"}
    assert value(metrics, "schedule_attempts_total", **labels) == 1


def test_a_pod_that_was_tried_before_waited_since_its_first_attempt() -> None:
    metrics = Metrics(clock=lambda: NOON + 60)
    small, large = simulation(node("n1", cpu="1")), simulation(node("n1", cpu="9"))
    wanted = pod(requests={"cpu": "4"})
    failed = large.attempt(wanted), small.attempt(wanted)
    metrics.attempted(attempted(wanted, failed[1], profile(), waited=40))
    again = attempted(wanted, failed[0], profile(), number=2, began=NOON + 59, waited=1)
    metrics.attempted(again)
    metrics.bound(again, "n1", 0.01)

    assert value(metrics, "pod_scheduling_sli_duration_seconds_sum", attempts="2") == 100
    assert metrics._since == {}


#: As kube-scheduler v1.36 declares them: type and labels.
DECLARED = {
    "schedule_attempts": ("counter", {"result", "profile"}),
    "scheduling_attempt_duration_seconds": ("histogram", {"result", "profile"}),
    "scheduling_algorithm_duration_seconds": ("histogram", set()),
    "preemption_victims": ("histogram", set()),
    "preemption_attempts": ("counter", set()),
    "pending_pods": ("gauge", {"queue"}),
    "goroutines": ("gauge", {"operation"}),
    "pod_scheduling_sli_duration_seconds": ("histogram", {"attempts"}),
    "pod_scheduling_attempts": ("histogram", set()),
    "framework_extension_point_duration_seconds": (
        "histogram",
        {"extension_point", "status", "profile"},
    ),
    "plugin_execution_duration_seconds": ("histogram", {"plugin", "extension_point", "status"}),
    "queue_incoming_pods": ("counter", {"queue", "event"}),
    "cache_size": ("gauge", {"type"}),
    "unschedulable_pods": ("gauge", {"plugin", "profile"}),
}


def test_names_types_and_labels_are_those_of_kube_scheduler() -> None:
    timings = RuleTimings()
    metrics = Metrics(timings)
    metrics.cache_size = lambda: {"nodes": 1}
    rules = timings.instrument(from_provider("DefaultProvider", Options()))
    world = simulation(node("n1", cpu="1"), profile=rules)
    told = tried(world, pod())
    metrics.attempted(told)
    metrics.bound(told, "n1", 0.01)
    metrics.attempted(tried(world, pod("q", requests={"cpu": "4"})))
    metrics.queued("active", "UnschedulablePodAdd")

    found = {
        family.name.removeprefix("scheduler_"): (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for family in text_string_to_metric_families(metrics.exposition()[0].decode())
        if family.name.startswith("scheduler_")
    }

    assert found == DECLARED


def test_gauges_are_asked_when_they_are_read() -> None:
    metrics = Metrics()
    metrics.pending = lambda: {"active": 3, "gated": 1}
    metrics.cache_size = lambda: {"nodes": 5, "pods": 7, "assumed_pods": 2}
    metrics.binding = lambda: 4
    metrics.queued("backoff", "ScheduleAttemptFailure", 2)

    assert value(metrics, "pending_pods", queue="active") == 3
    assert value(metrics, "pending_pods", queue="backoff") == 0
    assert value(metrics, "pending_pods", queue="gated") == 1
    assert value(metrics, "cache_size", type="assumed_pods") == 2
    assert value(metrics, "goroutines", operation="binding") == 4
    labels = {"queue": "backoff", "event": "ScheduleAttemptFailure"}
    assert value(metrics, "queue_incoming_pods_total", **labels) == 2


def test_evictions_are_counted() -> None:
    metrics = Metrics()
    world = simulation(node("n1", cpu="1"), pod("low", node="n1", requests={"cpu": "1"}))
    told = tried(world, pod("high", requests={"cpu": "1"}, priority=5))
    metrics.attempted(told)
    metrics.evicting(told, ["default/low"])

    assert value(metrics, "preemption_attempts_total") == 1
    assert value(metrics, "preemption_victims_sum") == 1


#: As kube-scheduler v1.36 declares them: first bound, last bound, how many.
BUCKETS = {
    "scheduling_attempt_duration_seconds": (0.001, 16.384, 15),
    "scheduling_algorithm_duration_seconds": (0.001, 16.384, 15),
    "preemption_victims": (1, 64, 7),
    "pod_scheduling_sli_duration_seconds": (0.01, 5242.88, 20),
    "pod_scheduling_attempts": (1, 16, 5),
    "framework_extension_point_duration_seconds": (0.0001, 0.2048, 12),
    "plugin_execution_duration_seconds": (0.00001, 0.00001 * 1.5**19, 20),
}


@pytest.mark.parametrize("name", BUCKETS)
def test_buckets_are_those_of_kube_scheduler(name: str) -> None:
    timings = RuleTimings()
    metrics = Metrics(timings)
    world = simulation(
        *nodes(3), profile=timings.instrument(from_provider("DefaultProvider", Options()))
    )
    told = tried(world, pod())
    metrics.attempted(told)
    metrics.bound(told, "n", 0.01)
    metrics.evicting(told, ["default/x"])

    bounds = {
        float(dict(labels)["le"])
        for sample, labels in samples(metrics)
        if sample == f"scheduler_{name}_bucket"
    } - {float("inf")}

    first, last, count = BUCKETS[name]
    assert len(bounds) == count
    assert min(bounds) == pytest.approx(first)
    assert max(bounds) == pytest.approx(last)


def test_counting_an_attempt_takes_microseconds() -> None:
    timings = RuleTimings()
    metrics = Metrics(timings)
    told = attempted(pod(), Decision("default/p", "p", "v1.36", nodes=5, node="n1"), profile())

    begun = time.process_time()
    for _ in range(20_000):
        metrics.attempted(told)
        metrics.bound(told, "n1", 0.001)
    seconds = time.process_time() - begun

    assert seconds / 20_000 < 50e-6
