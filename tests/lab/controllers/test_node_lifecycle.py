"""Nodes are registered and tainted by their conditions; pods of lost nodes are deleted."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import ManagedCluster, conditions, workload
from podium.lab.controllers.node_lifecycle import desired_taints


def test_a_bare_node_becomes_a_ready_one(lab: ManagedCluster) -> None:
    node = lab.registry.get("Node", "n0")

    assert conditions(node)["Ready"] == "True"
    assert node["status"]["allocatable"]["pods"] == "110"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n0"


def test_a_node_that_says_what_it_is_stays_as_it_is(lab: ManagedCluster) -> None:
    status = {
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "3"},
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "3"},
        "conditions": [{"type": "Ready", "status": "False"}],
    }
    lab.create("Node", {"metadata": {"name": "mine"}, "status": status})
    lab.settle()

    assert lab.registry.get("Node", "mine")["status"] == status


@pytest.mark.parametrize(
    ("kind", "value", "taints"),
    [
        ("Ready", "True", set()),
        ("Ready", "False", {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}),
        ("Ready", "Unknown", {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}),
        ("MemoryPressure", "True", {("memory-pressure", "NoSchedule")}),
        ("DiskPressure", "True", {("disk-pressure", "NoSchedule")}),
        ("PIDPressure", "True", {("pid-pressure", "NoSchedule")}),
        ("NetworkUnavailable", "True", {("network-unavailable", "NoSchedule")}),
        ("MemoryPressure", "False", set()),
    ],
)
def test_conditions_become_taints(kind: str, value: str, taints: set[tuple[str, str]]) -> None:
    own = {"key": "mine", "effect": "NoSchedule"}
    stale = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule", "value": ""}
    node = {
        "spec": {"taints": [own] + ([stale] if kind != "DiskPressure" else [])},
        "status": {"conditions": [{"type": kind, "status": value}]},
    }
    found = {(each["key"], each["effect"]) for each in desired_taints(node, "now")}

    assert found - {("mine", "NoSchedule")} == {
        (f"node.kubernetes.io/{name}", effect) for name, effect in taints
    }
    assert ("mine", "NoSchedule") in found


def test_a_cordoned_node_is_tainted_until_it_is_not(lab: ManagedCluster) -> None:
    lab.edit("Node", "n0", unschedulable=True)
    lab.settle()
    [taint] = lab.registry.get("Node", "n0")["spec"]["taints"]
    assert taint["key"] == "node.kubernetes.io/unschedulable"
    lab.edit("Node", "n0", unschedulable=False)
    lab.settle()

    assert "taints" not in lab.registry.get("Node", "n0")["spec"]


def test_pods_of_a_node_that_is_gone_go_too(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()
    lab.registry.delete("Node", "n0")
    lab.settle(10)

    assert len(lab.pods()) == 3
    assert "n0" not in {each["spec"]["nodeName"] for each in lab.pods()}


def test_an_extended_resource_of_the_capacity_is_allocatable(lab: ManagedCluster) -> None:
    def told(**resources: str) -> None:
        capacity = {**lab.get("Node", "n1", "")["status"]["capacity"]}
        capacity.pop("example.com/gauge", None)
        lab.registry.modify(
            "Node",
            "n1",
            "",
            change=lambda it: it | {"status": it["status"] | {"capacity": capacity | resources}},
            subresource="status",
        )
        lab.settle()

    told(**{"example.com/gauge": "1000"})
    assert lab.get("Node", "n1", "")["status"]["allocatable"]["example.com/gauge"] == "1000"
    told()
    allocatable = lab.get("Node", "n1", "")["status"]["allocatable"]
    assert "example.com/gauge" not in allocatable
    assert "cpu" in allocatable
