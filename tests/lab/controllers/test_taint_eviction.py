"""Pods leave nodes whose NoExecute taints they do not tolerate."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import (
    Json,
    ManagedCluster,
    conditions,
    pod,
    workload,
)
from podium.lab.controllers.taint_eviction import eviction_time


def test_pods_leave_an_unreachable_node_after_their_patience(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()
    lost = [p["metadata"]["name"] for p in lab.pods() if p["spec"]["nodeName"] == "n0"]
    assert lost
    lab.node_is("n0", "Unknown")
    lab.settle(10)
    assert conditions(lab.get("Pod", lost[0]))["Ready"] == "False"
    assert "deletionTimestamp" not in lab.get("Pod", lost[0])["metadata"]
    lab.settle(300)

    # Deleted, but nobody on the node says that it is gone.
    assert "deletionTimestamp" in lab.get("Pod", lost[0])["metadata"]
    elsewhere = [p for p in lab.pods() if p["spec"].get("nodeName") != "n0"]
    assert len(elsewhere) == 3
    lab.node_is("n0", "True")
    lab.settle()
    assert lost[0] not in lab.names()


def test_pods_that_do_not_put_up_with_a_taint_leave_at_once(lab: ManagedCluster) -> None:
    lab.create("Pod", pod("patient", tolerations=[{"operator": "Exists"}]))
    lab.create("Pod", pod("rash"))
    lab.binds = True
    lab.settle()
    for name in ("n0", "n1", "n2"):
        lab.edit("Node", name, taints=[{"key": "fire", "effect": "NoExecute"}])
    lab.settle()

    assert lab.names() == ["patient"]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 100.0),
        ([{"operator": "Exists"}], None),
        ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}], 100.0),
        (
            [
                {"key": "a", "operator": "Exists", "tolerationSeconds": 30},
                {"key": "b", "value": "x", "tolerationSeconds": 7},
            ],
            107.0,
        ),
        ([{"operator": "Exists", "tolerationSeconds": -5}], 100.0),
    ],
)
def test_the_shortest_patience_counts(tolerations: list[Json], expected: float | None) -> None:
    taints = [
        {"key": "a", "effect": "NoExecute"},
        {"key": "b", "value": "x", "effect": "NoExecute"},
    ]

    assert eviction_time(tolerations, taints, 100.0) == expected
