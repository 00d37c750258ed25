"""Domains that are lost in turn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from manifests import budget, listed, priority_class
from podium.library.reading import read
from podium.objects.reading.collection import Objects
from podium.what_if.survive.survival import DomainLoss, survive
from what_if.clusters import Item, chosen, node, owned, planned, pod, with_claim, workload

ZONE = "topology.kubernetes.io/zone"


def objects_of(tmp_path: Path, items: list[Item]) -> Objects:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(listed(items)))
    return read([str(file)])


def losses(tmp_path: Path, items: list[Item], label: str = ZONE) -> dict[str, DomainLoss]:
    found = survive(objects_of(tmp_path, items), label, chosen())
    return {each.value: each for each in found.domains}


NODES = [node("n1", "a"), node("n2", "b"), node("n3", "c")]


def test_pods_of_a_lost_zone_are_placed_anew(tmp_path: Path) -> None:
    found = losses(tmp_path, [*NODES, workload("Deployment", "web", 6)])

    assert {value: (loss.pods, loss.replaced) for value, loss in found.items()} == {
        "a": (2, 2),
        "b": (2, 2),
        "c": (2, 2),
    }
    short = found["a"].workloads[0]
    assert (short.name, short.wanted, short.at_once, short.after) == (
        "Deployment/default/web", 6, 4, 6,
    )  # fmt: skip


def test_what_fits_nowhere_is_left_with_its_reason(tmp_path: Path) -> None:
    found = losses(tmp_path, [*NODES, workload("Deployment", "web", 3, cpu="3")])

    assert len(found["a"].left) == 1
    assert "2 Insufficient cpu" in found["a"].left[0].reason
    assert found["a"].workloads[0].after == 2


def test_pods_without_a_controller_and_of_daemon_sets(tmp_path: Path) -> None:
    items = [*NODES, pod("bare", nodeName="n1"), workload("DaemonSet", "agent", None)]

    found = losses(tmp_path, items)

    assert [(each.pod, each.pending) for each in found["a"].left] == [("default/bare", False)]
    assert found["b"].pods == 0
    assert found["b"].left == []


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"minAvailable": 3}, 3),
        ({"minAvailable": "50%"}, 2),
        ({"maxUnavailable": 1}, 2),
        ({"maxUnavailable": "34%"}, 1),
    ],
)
def test_budgets_that_are_not_met(tmp_path: Path, spec: dict[str, Any], wanted: int) -> None:
    items = [*NODES, workload("Deployment", "web", 3, cpu="3"), budget("keep", "web", **spec)]

    found = losses(tmp_path, items)["a"].budgets

    expected = [] if wanted <= 2 else [("PodDisruptionBudget/default/keep", wanted, 2, 2)]
    assert [(each.name, each.wanted, each.at_once, each.after) for each in found] == expected


def test_evicted_pods_are_created_anew(tmp_path: Path) -> None:
    vip = workload("Deployment", "vip", 1, cpu="3", priorityClassName="urgent")
    zone_a = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchExpressions": [
            {"key": ZONE, "operator": "In", "values": ["a"]}]}}]}}  # fmt: skip
    vip["spec"]["template"]["spec"]["affinity"] = zone_a
    items = [
        *NODES[:2],
        priority_class("urgent", 1000),
        vip,
        workload("Deployment", "web", 1, cpu="3"),
    ]

    found = losses(tmp_path, items)["a"]

    assert len(found.evicted) == 1
    assert [each.workload for each in found.left] == ["Deployment/default/web"]


@pytest.mark.parametrize("seed", range(12))
def test_a_loss_leaves_what_a_plan_leaves(tmp_path: Path, seed: int) -> None:
    """The plan has controllers, time and watches; the number of pods without a node agrees.

    All pods are of one size, so the order in which controllers create them does not matter.
    """
    rng = random.Random(seed)  # noqa: S311  nothing secret about a cluster
    cpu = f"{rng.randint(5, 20)}00m"
    items = [node(f"n{i}", "abc"[i % 3], cpu=str(rng.randint(2, 5))) for i in range(6)]
    items += [workload("Deployment", f"web{i}", rng.randint(1, 4), cpu=cpu) for i in range(4)]
    settled = planned(items, "cordon n0", "uncordon n0")
    rest = {each.name: each.pods for each in settled.after.nodes}
    zone = rng.choice("abc")

    plan = planned(items, f"lose {ZONE}={zone}")
    loss = losses(tmp_path, items)[zone]

    lost = sum(count for name, count in rest.items() if "abc"[int(name[1:]) % 3] == zone)
    waiting = [each for each in plan.pending if not each.was_pending]
    assert len(plan.moved) + len(waiting) == lost
    assert (len(loss.left), loss.replaced) == (len(waiting), len(plan.moved))


def test_several_workers_find_the_same(tmp_path: Path) -> None:
    objects = objects_of(tmp_path, [*NODES, workload("Deployment", "web", 5, cpu="2")])

    alone = survive(objects, ZONE, chosen())

    assert survive(objects, ZONE, chosen(), workers=2) == alone


def test_replica_sets_speak_for_deployments_that_are_not_in_the_input(tmp_path: Path) -> None:
    objects = objects_of(tmp_path, [*NODES, workload("Deployment", "web", 3, cpu="3")])
    objects.lists.pop("Deployment")

    found = {each.value: each for each in survive(objects, ZONE, chosen()).domains}["a"]

    assert [(each.name, each.wanted, each.after) for each in found.workloads] == [
        ("Deployment/default/web", 3, 2)
    ]


def test_terminating_pods_of_a_lost_node_go_anyway(tmp_path: Path) -> None:
    leaving = owned("ReplicaSet", "web", "web-1")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-17T20:00:00Z"

    found = losses(tmp_path, [*NODES, leaving, owned("ReplicaSet", "web", "web-2")])

    assert (found["a"].pods, found["a"].replaced, found["a"].left) == (1, 1, [])


def test_pods_of_other_schedulers_are_not_known(tmp_path: Path) -> None:
    found = losses(tmp_path, [*NODES, owned("ReplicaSet", "web", "web-1", schedulerName="volcano")])

    assert [(each.pod, each.unknown) for each in found["a"].left] == [
        ("default/web-1", "scheduler volcano")
    ]
    assert found["a"].replaced == 0


def test_pods_whose_claims_were_not_dumped_are_not_known(tmp_path: Path) -> None:
    running = owned("ReplicaSet", "web", "web-1", **with_claim("data"))

    found = losses(tmp_path, [*NODES, running])

    assert [each.unknown for each in found["a"].left] == ["claim data, which is not in the input"]


@pytest.mark.parametrize("kind", ["Node", "DaemonSet"])
def test_pods_of_a_lost_node_are_not_missed(tmp_path: Path, kind: str) -> None:
    """A static pod and one of a daemon set go with their node: nobody wants them elsewhere."""
    static = owned("ReplicaSet", "web", "proxy-n1")
    static["metadata"]["ownerReferences"][0]["kind"] = kind

    found = losses(tmp_path, [*NODES, static])

    assert (found["a"].pods, found["a"].left, found["a"].workloads) == (0, [], [])


def test_a_workload_that_was_not_dumped_wants_the_pods_it_has(tmp_path: Path) -> None:
    found = losses(
        tmp_path,
        [
            *NODES,
            owned("ReplicaSet", "web", "web-1", cpu="4"),
            owned("ReplicaSet", "web", "web-2", nodeName="n2"),
        ],
    )

    assert [(each.name, each.wanted, each.at_once) for each in found["a"].workloads] == [
        ("ReplicaSet/default/web", 2, 1)
    ]


def test_nodes_without_labels_are_lost_one_after_the_other(tmp_path: Path) -> None:
    bare = [node("n1"), node("n2")]
    for each in bare:
        del each["metadata"]["labels"]

    found = losses(tmp_path, [*bare, owned("ReplicaSet", "web", "web-1")], "node")

    assert {value: loss.replaced for value, loss in found.items()} == {"n1": 1, "n2": 0}


def test_the_end_of_a_label_stands_for_it(tmp_path: Path) -> None:
    racks = [node("n1", **{"example.com/rack": "r1"}), node("n2", **{"example.com/rack": "r2"})]

    assert set(losses(tmp_path, racks, "rack")) == {"r1", "r2"}
    assert set(losses(tmp_path, NODES, "zone")) == {"a", "b", "c"}


def test_important_workloads_come_first(tmp_path: Path) -> None:
    small = [node("n1", "a", cpu="8"), node("n2", "b", cpu="1")]
    pods = [owned("ReplicaSet", "web", f"web-{n}", cpu="2", priority=n * 10) for n in (1, 3, 2)]

    found = losses(tmp_path, [*small, *pods])

    assert [each.priority for each in found["a"].left] == [30, 20, 10]
