"""Pod groups in the scheduler of a cluster: bound together or not at all, and what is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import manifests
from manifests import Manifest, pod_group, priority_class
from podium.kube.api import MERGE_PATCH
from podium.library.profile_source import ProfileSource
from podium.virtual_cluster.cluster import Replica, SimulatedCluster
from podium.virtual_cluster.in_process_api import InProcessApi

CHOSEN = ProfileSource(environment={}, profile="v1.37", feature_gates=({"GenericWorkload": True},))


def metrics_of(replica: Replica) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The metrics by name and labels, without the prefix of the scheduler."""
    found = {}
    for family in replica.run.host.metrics.collect():
        for each in family.samples:
            labels = tuple(sorted((k, v) for k, v in each.labels.items() if k != "profile"))
            found[each.name.removeprefix("scheduler_"), labels] = each.value
    return found


def pod(name: str, group: str | None = "g", cpu: str = "1500m", **spec: Any) -> Manifest:
    named: Manifest = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return manifests.pod(name, cpu, **named, **spec)


def group(minimum: int, name: str = "g", **spec: Any) -> Manifest:
    return pod_group(name, minimum, **spec)


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with SimulatedCluster(controllers=False) as made:
        yield made


def node(name: str, cpu: str = "2") -> Manifest:
    return manifests.node(name, cpu)


def nodes_of(cluster: SimulatedCluster) -> dict[str, str | None]:
    pods = cluster.registry.list("Pod")
    return {each["metadata"]["name"]: each["spec"].get("nodeName") for each in pods}


def condition(cluster: SimulatedCluster) -> dict[str, Any]:
    [found] = cluster.registry.list("PodGroup")
    [written] = found["status"]["conditions"]
    return written  # type: ignore[no-any-return]


def test_a_group_that_fits_is_bound_at_once(cluster: SimulatedCluster) -> None:
    cluster.load([node("n1"), node("n2"), group(2), pod("a0"), pod("a1")])
    cluster.add_scheduler(CHOSEN.choose())
    cluster.run_for(1)

    assert sorted(filter(None, nodes_of(cluster).values())) == ["n1", "n2"]
    told = condition(cluster)
    assert (told["status"], told["reason"], told["message"]) == ("True", "Scheduled", "")


class GroupMadeAnew(InProcessApi):
    """The group is made anew, with room for more pods, before its first condition arrives."""

    is_anew = False

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        if "podgroups" in path and not self.is_anew:
            self.is_anew = True
            self.registry.delete("PodGroup", "g", "default")
            self.registry.create("PodGroup", group(9), namespace="default")
        return await super().patch(path, patch, content_type)


def test_a_condition_is_not_written_into_another_group_of_the_same_name(
    cluster: SimulatedCluster,
) -> None:
    cluster.load([node("n1"), node("n2"), group(2), pod("a0"), pod("a1")])
    client = GroupMadeAnew(cluster.server)
    cluster.add_scheduler(CHOSEN.choose(), client=client)
    cluster.run_for(30)

    [anew] = cluster.registry.list("PodGroup")
    assert client.is_anew
    assert not (anew.get("status") or {}).get("conditions")


def test_a_group_that_does_not_fit_is_tried_again_by_time(cluster: SimulatedCluster) -> None:
    cluster.load([node("n1"), node("n2"), group(3), *(pod(f"a{n}") for n in range(3))])
    cluster.add_scheduler(CHOSEN.choose())
    cluster.run_for(10)

    assert set(nodes_of(cluster).values()) == {None}
    told = condition(cluster)
    assert told["reason"] == "Unschedulable"
    assert told["message"].startswith("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")
    texts = {
        each["metadata"]["name"]: each["status"]["conditions"][0]["message"]
        for each in cluster.registry.list("Pod")
    }
    assert texts["a0"].startswith("pod group is unschedulable, minCount (3)")
    assert texts["a2"] == "0/2 nodes are available: 2 Insufficient cpu."

    cluster.load([node("n3")])
    cluster.run_for(20)

    assert set(nodes_of(cluster).values()) == {"n1", "n2", "n3"}
    assert condition(cluster)["status"] == "True"


def test_pods_wait_for_the_group_and_for_each_other(cluster: SimulatedCluster) -> None:
    cluster.load([node("n1"), node("n2"), pod("a0")])
    cluster.add_scheduler(CHOSEN.choose())
    cluster.run_for(5)
    assert nodes_of(cluster) == {"a0": None}
    cluster.load([group(2)])
    cluster.run_for(5)
    assert nodes_of(cluster) == {"a0": None}
    cluster.load([pod("a1")])
    cluster.run_for(5)

    assert None not in nodes_of(cluster).values()


def test_pods_of_lower_priority_make_room_for_a_group() -> None:
    with SimulatedCluster() as cluster:  # with kubelets, which let victims end
        _preempted(cluster)


def _preempted(cluster: SimulatedCluster) -> Replica:
    cluster.load(
        [
            priority_class("high", 100),
            *(node("n1"), node("n2"), group(1, "low")),
            *(pod(f"low{n}", "low", nodeName=f"n{n}") for n in (1, 2)),
            group(2, priorityClassName="high"),
            *(pod(f"a{n}", priorityClassName="high") for n in range(2)),
        ]
    )
    replica = cluster.add_scheduler(CHOSEN.choose())
    cluster.run_for(60)

    assert set(nodes_of(cluster)) == {"a0", "a1"}
    assert None not in nodes_of(cluster).values()
    events = cluster.registry.list("Event")
    [about, _] = [each for each in events if each["reason"] == "Preempted"]
    [found] = [
        each for each in cluster.registry.list("PodGroup") if each["metadata"]["name"] == "g"
    ]
    uid = found["metadata"]["uid"]
    assert (about.get("note") or about["message"]) == f"Preempted by podgroup {uid} on node cluster"
    return replica


def test_cycles_are_counted_as_kube_scheduler_counts_them(cluster: SimulatedCluster) -> None:
    cluster.load([node("n1"), node("n2"), group(3), *(pod(f"a{n}") for n in range(3))])
    replica = cluster.add_scheduler(CHOSEN.choose())
    cluster.run_for(2.5)
    found = metrics_of(replica)

    tried = found["podgroup_schedule_attempts_total", (("result", "unschedulable"),)]
    assert tried == 2
    attempts = "podgroup_scheduling_attempt_duration_seconds_count"
    assert found[attempts, (("result", "unschedulable"),)] == tried
    assert found["podgroup_scheduling_algorithm_duration_seconds_count", ()] == tried
    status = (("result", "UnschedulableAndUnresolvable"),)
    assert found["workload_preemption_attempts_total", status] == tried
    searched = "preemption_evaluation_duration_seconds_count"
    assert found[searched, (("preemptor", "podgroup"), *status)] == tried
    # The group waits as one thing, with three pods.
    assert found["queued_entities", (("queue", "backoff"), ("type", "podgroup"))] == 1
    assert found["queued_entities", (("queue", "backoff"), ("type", "pod"))] == 0
    assert found["pending_pods", (("queue", "backoff"),)] == 3
    event = ("event", "ScheduleAttemptFailure")
    came = "queue_incoming_entities_total"
    assert found[came, (event, ("queue", "backoff"), ("type", "podgroup"))] == tried

    cluster.load([node("n3"), pod("b", "absent")])
    cluster.run_for(20)
    found = metrics_of(replica)
    assert found["podgroup_schedule_attempts_total", (("result", "scheduled"),)] == 1
    assert found["pending_pods", (("queue", "incomplete"),)] == 1


def test_evictions_for_a_group_are_counted() -> None:
    with SimulatedCluster() as cluster:
        replica = _preempted(cluster)
        found = metrics_of(replica)

    preemptor = ("preemptor", "podgroup")
    assert found["podgroup_schedule_attempts_total", (("result", "waiting_on_preemption"),)] == 1
    assert found["workload_preemption_attempts_total", (("result", "Success"),)] == 1
    assert found["workload_preemption_victims_sum", ()] == 2
    assert found["preemption_workload_disruptions_sum", (preemptor,)] == 2
    ended = "preemption_execution_duration_seconds_count"
    assert found[ended, (preemptor, ("result", "success"))] == 1


def test_without_the_gate_there_are_no_metrics_of_groups(cluster: SimulatedCluster) -> None:
    cluster.load([node("n1"), pod("a0"), pod("a1")])
    replica = cluster.add_scheduler(ProfileSource(environment={}, profile="v1.37").choose())
    cluster.run_for(1)

    found = metrics_of(replica)
    assert not [name for name, _ in found if name.startswith(("podgroup_", "workload_"))]
    came = {dict(labels)["type"] for name, labels in found if "incoming_entities_total" in name}
    assert came == {"pod"}
