"""A decision with kept answers is the plain decision, in long histories of ordinary clusters."""

from __future__ import annotations

import pytest

from long_histories import PROFILES, TUNINGS, LongHistory, Plan


@pytest.mark.parametrize("seed", range(8))
def test_pods_of_some_classes_come_and_go(seed: int) -> None:
    """With what users have: a pod must not be placed on a node without room."""
    nodes, classes = [(20, 6), (40, 15), (80, 40), (40, 2)][seed % 4]
    LongHistory(seed, Plan(nodes=nodes, classes=classes)).run(300)


@pytest.mark.parametrize("tuning", range(len(TUNINGS)))
@pytest.mark.parametrize("nodes", [3, 5, 7])
def test_small_clusters(nodes: int, tuning: int) -> None:
    """Fewer nodes than it takes for groups of them to be worth looking at."""
    plan = Plan(tuning=TUNINGS[tuning], nodes=nodes, features=True, taints=True)
    LongHistory(nodes, plan).run(150)


@pytest.mark.parametrize("tuning", range(len(TUNINGS)))
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_pods_with_wishes(profile: str, tuning: int) -> None:
    """Spreading, affinity, ports, volumes, images; nodes that come, change and go."""
    for seed, preemption in enumerate((False, True)):
        plan = Plan(
            profile,
            TUNINGS[tuning],
            nodes=(20, 40)[seed],
            classes=15,
            features=True,
            taints=not seed,
            preemption=preemption,
        )
        LongHistory(seed, plan).run(150)
