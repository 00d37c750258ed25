"""Recordings of pod groups are replayed as the queue of v1.37 goes on."""

from __future__ import annotations

from typing import Any

from podium.past.recordings.replay import run
from podium.past.recordings.scenarios import scenario_of


def node(name: str, cpu: str) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod(name: str, cpu: str, *, group: str = "", **given: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **given}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def gang(name: str, minimum: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priority": 0},
    }


def replayed(objects: list[dict[str, Any]], pending: list[dict[str, Any]]) -> list[Any]:
    """What each cycle took from the queue, and what became of its pods."""
    scenario = {
        "name": "s",
        "release": "v1.37.0",
        "objects": objects,
        "pending": pending,
        "expected": {"cycles": []},
    }
    found = run(scenario_of(scenario)).groups
    assert found is not None
    return [
        (cycle["entity"], [each.get("node") for each in cycle["pods"]]) for cycle in found["cycles"]
    ]


def test_a_pod_whose_victims_left_is_tried_before_a_group_that_rests() -> None:
    """An idle scheduler does not wait for the backoff of a pod that was rejected."""
    victim = pod("v", "2", nodeName="n1", priority=0)
    single = pod("s", "1500m", priority=10)
    members = [pod(f"a{n}", "2", group="g") for n in range(2)]

    cycles = replayed([node("n1", "2"), gang("g", 2), victim], [single, *members])

    assert cycles == [
        ("pod default/s", [None]),
        ("podgroup default/g", [None, None]),
        ("pod default/s", ["n1"]),
        ("podgroup default/g", [None, None]),
    ]


def test_a_nomination_counts_from_the_arrival_of_its_pod() -> None:
    nominated = {**pod("s", "2"), "status": {"nominatedNodeName": "n1"}}

    cycles = replayed([node("n1", "2")], [pod("first", "2"), nominated])

    assert cycles[0] == ("pod default/first", [None])
    assert cycles[1] == ("pod default/s", ["n1"])


def test_the_end_of_a_nomination_wakes_pods() -> None:
    """The nominated pod itself among them."""
    nominated = {**pod("s", "4"), "status": {"nominatedNodeName": "n1"}}

    cycles = replayed([node("n1", "2")], [pod("first", "2"), nominated])

    assert [entity for entity, _ in cycles] == [
        "pod default/first",
        "pod default/s",
        "pod default/first",
        "pod default/s",
    ]
    assert cycles[2][1] == ["n1"]
