"""The rule `kube-scheduler` for ties: the root of its heap over the nodes in the order found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from builders_v1_36 import default_profile
from podium.cluster.simulation import Simulation
from podium.engine.cycle.searching import wanted_nodes
from podium.engine.cycle.ties import heap_root
from podium.objects.reading.collection import Objects


def go_heap_root(scores: Sequence[int]) -> int:
    """The index that Go's heap.Init moves to the root, step by step; the highest score wins."""
    heap = [(score, index) for index, score in enumerate(scores)]
    for start in reversed(range(len(heap) // 2)):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[parent][0]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0][1]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_the_root_of_the_heap_follows_from_the_places_of_the_best(scores: list[int]) -> None:
    best = [place for place, score in enumerate(scores) if score == max(scores)]

    assert best[heap_root(best)] == go_heap_root(scores)


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("count", [20, 99, 260])
@pytest.mark.parametrize("seed", range(3))
def test_a_burst_is_placed_as_by_one_worker_of_kube_scheduler(
    count: int, seed: int, *, recording: bool
) -> None:
    rng = Random(seed)  # noqa: S311
    ground = [
        node(f"n{each:03}", cpu=rng.choice([4, 8]), labels={"disk": rng.choice(["ssd", "hdd"])})
        for each in range(count)
    ]
    options = {"ties": "kube-scheduler", "percentage_of_nodes_to_score": 0}
    made, shown = (Simulation(default_profile(**options)) for _ in range(2))
    for each in (made, shown):
        each.load(Objects(lists={"Node": ground}))
    size = {each.name: each for each in ground}
    wanted = wanted_nodes(count, 0, adaptive=True)
    halves: Counter[str] = Counter()
    start = tied = 0
    for number in range(3 * count):
        selector = rng.choice([{}, {}, {"disk": "ssd"}])
        waiting = pod(f"p{number}", requests={"cpu": "500m"}, node_selector=selector)
        [step] = made.run([waiting], recording=recording)
        [full] = shown.run([waiting], recording=True)
        found: list[str] = []
        looked = 0
        for name in [*size][start:] + [*size][:start]:
            allocatable = size[name].status.allocatable or {}
            room = float(allocatable["cpu"]) * 2 > halves[name]
            fits = room and selector.items() <= size[name].labels.items()
            if fits and len(found) == wanted:
                break
            looked += 1
            found += [name] * fits
        start = (start + looked) % count
        totals = full.decision.totals
        assert full.decision.feasible == found
        chosen = found[go_heap_root(totals.tolist())] if totals is not None else found[0]
        assert step.decision.node == full.decision.node == chosen
        halves[chosen] += 1
        tied += step.decision.tied > 1
    assert tied > count / 2
