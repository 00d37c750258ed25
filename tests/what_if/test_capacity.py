"""How many more pods fit: the same as placing them one by one, and as a model that counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace as replaced
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import podium
from builders import container, node, nodes, objects, pod, selector, taint, term, tolerates
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, SchedulingGate, TopologySpreadConstraint
from podium.objects.reading.collection import Objects
from podium.what_if.capacity.capacity import CapacitySearch, PodKind, capacity, kinds_named
from podium.what_if.capacity.node_shapes import NodeShape, shape_named, shapes_of
from podium.what_if.capacity.results import Capacity
from random_clusters import Cluster, clusters
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

V1_13 = podium.default_profile("v1.13")
V1_36 = podium.default_profile("v1.36")
PROFILES = pytest.mark.parametrize("profile", [V1_13, V1_36], ids=["v1.13", "v1.36"])
MOST = 40


def one_by_one(
    cluster: Objects, kinds: list[Pod], profile: podium.Profile, most: int
) -> tuple[Counter[str], int]:
    """Pods per node, and how many fit, with no fast path and none of the code under test."""
    simulation = podium.Simulation(replaced(profile, post_filters=()), fast=False)
    running = cluster.copied()
    running.pods = [each for each in cluster.pods if each.spec.node_name]
    simulation.load(running)
    found: Counter[str] = Counter()
    for number in range(most):
        sample = kinds[number % len(kinds)]
        name = f"copy-{number}"
        metadata = replace(sample.metadata, name=name, uid=f"{sample.namespace}/{name}")
        status = replace(sample.status, nominated_node_name="")
        one = replace(sample, metadata=metadata, status=status)
        decision = simulation.attempt(one)
        if decision.node is None:
            return found, number
        simulation.place(one, decision)
        found[decision.node] += 1
    return found, most


def check(cluster: Objects, wanted: Pod, profile: podium.Profile) -> None:
    per_node, total = one_by_one(cluster, [wanted], profile, MOST)

    results = []
    for fast in (True, False):
        search = CapacitySearch(cluster, wanted, profile, most=MOST, fast=fast)
        list(search.steps())
        results.append(search.result)

    for found in results:
        assert found.pods == total == sum(found.per_node.values())
        assert found.per_node == per_node
        assert found.at_least == (total == MOST)
    quick, plain = results
    assert quick.message == plain.message
    assert grouped(quick) == grouped(plain)
    assert quick.gains == plain.gains


def grouped(found: Capacity) -> set[tuple[object, ...]]:
    return {(e.rule, e.reasons, frozenset(e.nodes), e.pods) for e in found.exhausted}


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_capacity_is_placing_one_after_the_other_in_v1_13(cluster: Cluster) -> None:
    check(objects(*cluster.objects()), cluster.wanted, V1_13)


@settings(max_examples=60, deadline=None)
@given(clusters_v1_36())
def test_capacity_is_placing_one_after_the_other_in_v1_36(cluster: ClusterV136) -> None:
    check(objects(*cluster.objects()), cluster.wanted, V1_36)


# A model that only counts ---------------------------------------------------------------------


def random_cluster(dice: Random) -> tuple[Objects, list[Node], list[Pod]]:
    """Nodes with few resources, taints and labels, and pods on them."""
    made = [
        node(
            f"n{i}",
            cpu=f"{dice.randint(1, 8) * 500}m",
            memory=f"{dice.randint(1, 8)}Gi",
            pods=dice.randint(1, 12),
            labels={"disk": dice.choice(["ssd", "hdd"])},
            taints=[taint("gpu")] if dice.random() < 0.25 else (),
            unschedulable=dice.random() < 0.15,
        )
        for i in range(dice.randint(1, 6))
    ]
    running = [
        pod(
            f"r{i}",
            node=dice.choice(made).name,
            requests={"cpu": f"{dice.randint(0, 5) * 100}m", "memory": "256Mi"},
        )
        for i in range(dice.randint(0, 8))
    ]
    return objects(*made, *running), made, running


def counted(made: list[Node], running: list[Pod], wanted: Pod) -> int:
    """What the numbers alone say: no rule of Podium is asked."""

    def request(each: Pod, resource: str) -> int:
        raw = str((each.spec.containers or [])[0].resources.requests[resource])  # type: ignore[index,union-attr]
        units = {"m": 1, "Mi": 1, "Gi": 1024}
        unit = next(u for u in ("Mi", "Gi", "m") if raw.endswith(u))
        return int(raw.removesuffix(unit)) * units[unit]

    total = 0
    for each in made:
        tolerated = bool(wanted.spec.tolerations) or not each.spec.taints
        labels = (wanted.spec.node_selector or {}).items() <= each.labels.items()
        if each.spec.unschedulable or not tolerated or not labels:
            continue
        there = [other for other in running if other.spec.node_name == each.name]
        limits = each.status.allocatable or {}
        free = {
            "cpu": int(str(limits["cpu"]).removesuffix("m")),
            "memory": int(str(limits["memory"]).removesuffix("Gi")) * 1024,
        }
        room = [int(limits["pods"]) - len(there)]
        for resource, amount in free.items():
            left = amount - sum(request(other, resource) for other in there)
            if request(wanted, resource):
                room.append(left // request(wanted, resource))
        total += max(0, min(room))
    return total


@PROFILES
@pytest.mark.parametrize("seed", range(60))
def test_capacity_is_what_a_model_counts(seed: int, profile: podium.Profile) -> None:
    dice = Random(seed)  # noqa: S311  the same in every run
    cluster, made, running = random_cluster(dice)
    wanted = pod(
        "w",
        requests={
            "cpu": f"{dice.randint(0, 6) * 100}m",
            "memory": f"{dice.choice([128, 512, 700])}Mi",
        },
        node_selector={"disk": "ssd"} if dice.random() < 0.3 else None,
        tolerations=[tolerates("gpu", "Exists")] if dice.random() < 0.5 else (),
    )

    found = capacity(cluster, wanted, profile)

    assert found.pods == counted(made, running, wanted) == sum(found.per_node.values())
    assert sum(len(each.nodes) for each in found.exhausted) == len(made)
    assert sum(each.pods for each in found.exhausted) == found.pods


# Kinds in a ratio -----------------------------------------------------------------------------


@PROFILES
@pytest.mark.parametrize("seed", range(20))
def test_several_kinds_are_placed_in_their_ratio(seed: int, profile: podium.Profile) -> None:
    dice = Random(seed)  # noqa: S311  the same in every run
    cluster, _, _ = random_cluster(dice)
    big = pod("big", requests={"cpu": "500m", "memory": "1Gi"})
    small = pod("small", requests={"cpu": "100m", "memory": "128Mi"})
    kinds = [PodKind("small", small, 3), PodKind("big", big, 1)]

    found = capacity(cluster, kinds, profile)

    _, total = one_by_one(cluster, [small, small, small, big], profile, 1000)
    assert found.pods == total == sum(found.per_node.values())
    assert found.placed["big"] == total // 4
    assert found.rounds == total // 4
    assert found.stopped_by == ("big" if total % 4 == 3 else "small")


def test_a_deployment_is_named_though_its_replica_set_is_not_in_the_input() -> None:
    owner = OwnerReference(kind="ReplicaSet", name="web-a1", uid="r", controller=True)
    running = pod("web-a1-x", labels={"pod-template-hash": "a1"})
    running = replace(running, metadata=replace(running.metadata, owner_references=[owner]))

    [kind] = kinds_named("deployment/web", objects(node("n"), running))

    assert kind.name == "deployment/web"


# What one more node adds ----------------------------------------------------------------------


@PROFILES
@pytest.mark.parametrize("spread", [False, True], ids=["by itself", "spread over zones"])
def test_what_one_more_node_adds(profile: podium.Profile, spread: bool) -> None:
    """The full cluster with the node, and its daemon pod, takes as many as the answer says."""
    labels = {"app": "x"}
    made = [node(f"n{i}", cpu="2", memory="4Gi", labels={"zone": f"z{i}"}) for i in range(3)]
    daemon = pod("agent-n1", node="n1", requests={"cpu": "500m"}, owner=("DaemonSet", "agent"))
    wanted = pod("w", labels=labels, requests={"cpu": "500m"})
    if spread:
        constraint = TopologySpreadConstraint(1, "zone", "DoNotSchedule", selector(labels))
        spec = replace(wanted.spec, topology_spread_constraints=[constraint])
        wanted = replace(wanted, spec=spec)
    cluster = objects(*made, daemon)

    found = capacity(cluster, wanted, profile, shapes=[shape_named(cluster, "n1")])

    # With the constraint, the zone of the new node may have one pod more than the others' four.
    more = 2 if spread and profile is V1_36 else 3
    assert found.pods == 11
    assert [(g.shape, g.pods, g.daemons) for g in found.gains] == [("n1", more, 1)]
    again = objects(*made, daemon)
    assert capacity(again, wanted, profile, shapes=()).pods == found.pods


def test_shapes_are_counted_and_the_most_common_comes_first() -> None:
    small = [node(f"s{i}", cpu="1", labels={"kubernetes.io/hostname": f"s{i}"}) for i in range(3)]
    cluster = objects(node("big", cpu="64"), *small)

    assert [(shape.name, shape.count) for shape in shapes_of(cluster)] == [("s0", 3), ("big", 1)]


def test_a_new_node_is_healthy_and_has_its_own_name() -> None:
    old = node(
        "n",
        labels={"kubernetes.io/hostname": "n", "zone": "a"},
        taints=[taint("node.kubernetes.io/not-ready"), taint("gpu")],
        unschedulable=True,
        conditions={"Ready": "False", "MemoryPressure": "True"},
    )

    made, _ = NodeShape(old).built({"n-new-1"})

    assert made.name == "n-new-2"
    assert made.labels == {"kubernetes.io/hostname": "n-new-2", "zone": "a"}
    assert [each.key for each in made.spec.taints or ()] == ["gpu"]
    assert not made.spec.unschedulable
    assert [(c.type, c.status) for c in made.status.conditions or ()] == [("Ready", "True")]


# What ran out ---------------------------------------------------------------------------------


@PROFILES
def test_nodes_are_grouped_by_what_ran_out_first(profile: podium.Profile) -> None:
    cluster = objects(
        *nodes(3, cpu="1", memory="64Gi"),
        node("tight", cpu="64", memory="1Gi"),
        node("full", pods=2),
    )

    found = capacity(cluster, pod("w", requests={"cpu": "300m", "memory": "300Mi"}), profile)

    said = {each.reasons: (each.nodes, each.pods) for each in found.exhausted}
    assert said[("Insufficient cpu",)] == (("n000", "n001", "n002"), 9)
    assert said[("Insufficient memory",)] == (("tight",), 3)
    pods = "Too many pods" if profile is V1_36 else "Insufficient pods"
    assert said[(pods,)] == (("full",), 2)


@PROFILES
def test_anti_affinity_is_what_runs_out(profile: podium.Profile) -> None:
    made = [node(f"n{i}", labels={"host": f"n{i}"}) for i in range(4)]
    wanted = pod("w", labels={"app": "x"}, anti=[term({"app": "x"}, "host")])

    found = capacity(objects(*made), wanted, profile)

    assert found.pods == 4
    assert [len(each.nodes) for each in found.exhausted] == [4]
    assert [(gain.shape, gain.pods) for gain in found.gains] == [("n0", 1)]


@PROFILES
def test_nothing_is_evicted_and_pending_pods_wait(profile: podium.Profile) -> None:
    low = pod("low", node="n", requests={"cpu": "1"}, priority=0)
    waiting = pod("waiting", requests={"cpu": "1"})
    cluster = objects(node("n", cpu="4"), low, waiting)
    wanted = pod("w", requests={"cpu": "1"}, priority=100)

    assert capacity(cluster, wanted, profile).pods == 3
    assert capacity(cluster, wanted, profile, pending_first=True).pods == 2


def test_a_pod_that_may_not_be_tried_fits_nowhere() -> None:
    gated = pod("w", containers=[container()])
    spec = replace(gated.spec, scheduling_gates=[SchedulingGate("wait")])

    found = capacity(objects(node("n")), replace(gated, spec=spec), V1_36)

    assert found.pods == 0
    assert "gate" in found.message


@given(st.integers(1, 30))
@settings(max_examples=10, deadline=None)
def test_the_search_ends_at_its_limit(most: int) -> None:
    found = capacity(
        objects(node("n", cpu="20")), pod("w", requests={"cpu": "1"}), V1_36, most=most
    )

    assert found.pods == min(most, 20)
    assert found.at_least == (most < 20)
