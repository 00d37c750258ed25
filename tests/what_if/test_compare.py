"""Configurations compared: outcomes by hand, compaction by seed, and a bound that holds."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

import podium
from builders import node, nodes, objects, pod, selector, taint, term, tolerates
from podium.objects.kinds.node import Node
from podium.objects.reading.collection import Objects
from podium.render.reports.comparison import comparison_lines
from podium.what_if.compare.bound import DIVIDED, lower_bound
from podium.what_if.compare.compaction import Compaction, PackedWorkload, workload_of
from podium.what_if.compare.comparison import CompareSearch, compare

V1_13 = podium.default_profile("v1.13")
V1_36 = podium.default_profile("v1.36")
(PACKING,) = podium.from_config(
    """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
      enabled: [{name: NodeResourcesFit, weight: 5}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
"""
)
HOST = "kubernetes.io/hostname"
PROFILES = {"v1.13": V1_13, "v1.36": V1_36, "packing": PACKING}


def random_cluster(dice: Random, *, least: int = 2, most: int = 7) -> Objects:
    """Nodes of several sizes, some of them tainted, and pods that run or wait."""
    made = [
        node(
            f"n{i}",
            cpu=str(dice.choice([2, 4, 4, 8])),
            memory=f"{dice.choice([4, 8, 16])}Gi",
            pods=dice.choice([3, 6, 110]),
            labels={HOST: f"n{i}", "zone": dice.choice("ab"), "disk": dice.choice(["ssd", "hdd"])},
            taints=[taint("gpu")] if dice.random() < 0.2 else (),
        )
        for i in range(dice.randint(least, most))
    ]
    pods = []
    for i in range(dice.randint(1, 9)):
        app = dice.choice(["web", "db"])
        pods.append(
            pod(
                f"p{i}",
                uid=f"p{i}",
                node=dice.choice(["", *(each.name for each in made)]),
                labels={"app": app},
                requests={
                    "cpu": f"{dice.randint(1, 20) * 100}m",
                    "memory": f"{dice.randint(1, 16) * 256}Mi",
                },
                node_selector={"disk": "ssd"} if dice.random() < 0.15 else None,
                tolerations=[tolerates("gpu", "Exists")] if dice.random() < 0.3 else (),
                anti=[term({"app": app}, HOST)] if dice.random() < 0.3 else (),
                ports=[80] if dice.random() < 0.15 else (),
                priority=dice.choice([0, 0, 10]),
            )
        )
    return objects(*made, *pods)


def with_nodes(workload: PackedWorkload, kept: list[Node]) -> PackedWorkload:
    found = workload.objects.copied()
    found.nodes = kept
    return PackedWorkload(found, workload.fixed, workload.pods)


# Compaction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("seed", range(15))
def test_compaction_is_monotone_in_the_size_of_the_cluster(seed: int, name: str) -> None:
    """A cluster that has more nodes, which leave first, never needs more."""
    workload = workload_of(random_cluster(Random(seed)))  # noqa: S311  the same in every run
    full = Compaction(workload, [PROFILES[name]], seed)
    order, needed = full.order(), full.needed()

    found = [
        Compaction(with_nodes(workload, order[:size]), [PROFILES[name]], seed).needed()
        for size in range(len(order) + 1)
    ]

    for size, number in enumerate(found):
        assert number == (needed if needed is not None and needed <= size else None)


@pytest.mark.parametrize("scanned", [128, 0], ids=["every number", "bisected"])
def test_more_equal_nodes_are_not_needed(scanned: int) -> None:
    pods = [pod(f"p{i}", requests={"cpu": "900m"}) for i in range(9)]
    found = set()
    for size in range(3, 12):
        workload = workload_of(objects(*nodes(size, cpu="4"), *pods))
        found.add(Compaction(workload, [V1_36], 1, scanned=scanned).needed())

    assert found == {3}


@pytest.mark.parametrize("seed", range(12))
def test_bisecting_finds_a_number_at_which_one_less_does_not_fit(seed: int) -> None:
    dice = Random(seed)  # noqa: S311  the same in every run
    workload = workload_of(random_cluster(dice, least=4, most=8))
    plain = Compaction(workload, [V1_36], seed)
    bisected = Compaction(workload, [V1_36], seed, scanned=0)

    number = bisected.needed()

    if plain.needed() is None:
        assert number is None
        return
    assert number is not None
    order = bisected.order()
    assert bisected.fits(order[:number])
    assert number == 1 or not bisected.fits(order[: number - 1])


def test_compaction_is_the_same_for_the_same_seed_and_in_any_process() -> None:
    cluster = random_cluster(Random(3), least=6, most=8)  # noqa: S311  the same in every run
    configurations = {"v1.36": V1_36, "packing": PACKING}

    runs = [compare(cluster, configurations, seeds=6, workers=workers) for workers in (1, 2, 1)]

    needed = [[outcome.needed for outcome in run.outcomes] for run in runs]
    assert needed[0] == needed[1] == needed[2]
    assert list(needed[0][0]) == [1, 2, 3, 4, 5, 6]


def test_the_order_of_nodes_depends_on_names_and_seed_alone() -> None:
    workload = workload_of(objects(*nodes(9), pod("p")))
    turned = workload_of(objects(*reversed(nodes(9)), pod("p")))

    orders = [[each.name for each in Compaction(w, [V1_36], 4).order()] for w in (workload, turned)]

    assert orders[0] == orders[1]
    assert orders[0] != [each.name for each in Compaction(workload, [V1_36], 5).order()]


# The bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("seed", range(25))
def test_the_bound_never_exceeds_what_was_found(seed: int, name: str) -> None:
    """Neither what compaction finds, nor the best of all sets of nodes."""
    cluster = random_cluster(Random(seed), most=5)  # noqa: S311  the same in every run
    profile = PROFILES[name]
    workload = workload_of(cluster)

    bound = lower_bound(workload, [profile])

    assert DIVIDED in bound.ignored
    for arrival in range(3):
        needed = Compaction(workload, [profile], arrival).needed()
        assert needed is None or bound.nodes <= needed
    search = Compaction(workload, [profile], 1)
    pool = search.order()
    for size in range(1, bound.nodes):
        for kept in combinations(pool, size):
            search.tried.clear()
            assert not search.fits(kept)


def test_the_bound_counts_memory_pods_and_pods_that_avoid_their_kind() -> None:
    def bound(cluster: Objects) -> int:
        return lower_bound(workload_of(cluster), [V1_36]).nodes

    made = [node(f"n{i}", cpu="8", memory="8Gi", pods=4, labels={HOST: f"n{i}"}) for i in range(9)]
    heavy = [pod(f"p{i}", requests={"memory": "3Gi"}) for i in range(5)]
    many = [pod(f"p{i}") for i in range(9)]
    apart = [pod(f"p{i}", labels={"a": "b"}, anti=[term({"a": "b"}, HOST)]) for i in range(6)]
    on_ports = [pod(f"p{i}", ports=[80]) for i in range(7)]

    assert bound(objects(*made, *heavy)) == 3  # two on each node, as no third one fits
    assert bound(objects(*made, *many)) == 3
    assert bound(objects(*made, *apart)) == 6
    assert bound(objects(*made, *on_ports)) == 7


def test_the_bound_says_what_it_ignores() -> None:
    spread = pod("p", affinity=[term({"app": "x"}, "zone")], anti=[term({"app": "y"}, "zone")])

    found = lower_bound(workload_of(objects(node("n"), spread)), [V1_36])

    assert found.ignored == (
        DIVIDED,
        "required pod affinity",
        "required pod anti-affinity, except of pods to their own kind per node",
    )


# Outcomes -------------------------------------------------------------------------------------


def test_packing_uses_fewer_nodes_and_the_difference_is_told() -> None:
    pods = [pod(f"p{i}", requests={"cpu": "1", "memory": "1Gi"}) for i in range(4)]
    cluster = objects(*nodes(4, cpu="4", memory="8Gi"), *pods)

    found = compare(cluster, {"default": V1_36, "packing": PACKING}, seeds=2)

    default, packing = found.outcomes
    assert (default.nodes_in_use, packing.nodes_in_use) == (4, 1)
    assert [use.resource for use in default.resources] == ["cpu", "memory"]
    cpu = packing.resources[0]
    assert (cpu.utilisation, cpu.utilisation_in_use, cpu.highest) == (0.25, 1.0, 1.0)
    assert default.resources[0].spread == 0
    assert cpu.spread == pytest.approx(0.433, abs=0.001)
    assert packing.resources[1].stranded == 4 << 30  # no cpu is left where it is free
    assert default.resources[1].stranded == 0
    assert len(found.differences()) == 3
    assert default.needed == packing.needed == {1: 1, 2: 1}


def test_pods_left_over_and_evicted_are_told() -> None:
    """Without priorities in the queue, the pod that comes first is evicted later."""
    by_arrival = podium.default_profile(
        "v1.13", podium.Options(feature_gates={"PodPriority": False})
    )
    cluster = objects(
        node("n", cpu="2"),
        pod("low", uid="low", node="n", requests={"cpu": "2"}, priority=0),
        pod("urgent", requests={"cpu": "2"}, priority=10),
        pod("never", requests={"cpu": "9"}),
    )

    found = compare(cluster, {"by priority": V1_13, "by arrival": by_arrival}, seeds=0)

    first, second = found.outcomes
    assert first.placements == {
        "default/urgent": "n",
        "default/low": None,
        "default/never": None,
    }
    assert second.placements["default/low"] == "n"
    assert second.left_over == ["default/never", "default/urgent"]
    assert found.hopeless == ("default/never",)


def test_evictions_are_counted() -> None:
    """The pod of a DaemonSet is on its node first, and less important than the pod that comes."""
    without = podium.default_profile("v1.36", podium.Options(disable_preemption=True))
    daemon = pod("d", uid="d", node="n", requests={"cpu": "1"}, owner=("DaemonSet", "d"))
    cluster = objects(node("n", cpu="2"), daemon, pod("w", requests={"cpu": "2"}, priority=10))

    found = compare(cluster, {"with": V1_36, "without": without}, seeds=0)

    assert [each.evicted for each in found.outcomes] == [("default/d",), ()]
    assert found.differences() == [("default/w", ("n", None))]


@pytest.mark.parametrize("steps", range(6))
def test_an_interrupted_comparison_can_be_shown(steps: int) -> None:
    cluster = objects(*nodes(2), pod("p", requests={"cpu": "1"}))
    search = CompareSearch(cluster, {"one": V1_36, "two": V1_13}, seeds=2)

    for _ in zip(range(steps), search.steps(), strict=False):
        pass

    found = search.result
    assert found.interrupted
    assert len(found.as_json()["configurations"]) == min(steps, 2)
    assert [line for line, _ in comparison_lines(found, 3)]
    assert sum(len(each.needed) for each in found.outcomes) == max(0, steps - 2)


def test_daemon_pods_go_with_their_nodes() -> None:
    daemons = [
        pod(f"d{i}", uid=f"d{i}", node=f"n00{i}", requests={"cpu": "1"}, owner=("DaemonSet", "d"))
        for i in range(3)
    ]
    pods = [pod(f"p{i}", requests={"cpu": "1"}) for i in range(4)]
    cluster = objects(*nodes(3, cpu="3"), *daemons, *pods)

    found = compare(cluster, {"one": V1_36}, seeds=1, bound=True)

    assert found.pods == 4
    assert found.outcomes[0].needed == {1: 2}
    assert found.outcomes[0].bound == 2


def test_a_workload_that_does_not_fit_needs_more_than_all() -> None:
    pods = [pod(f"p{i}", requests={"cpu": "2"}, anti=[term(selector({}), HOST)]) for i in range(3)]
    cluster = objects(*nodes(2, cpu="2", labels=None), *pods)

    found = compare(cluster, {"one": V1_36, "two": V1_13}, seeds=1)

    assert found.hopeless != ()
    assert found.as_json()["hopeless"] == list(found.hopeless)
