"""The status of disruption budgets, and the evictions that it allows."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import Json, ManagedCluster, workload
from manifests import budget
from podium.lab.api.options import WriteOptions
from podium.lab.api.status import StatusError
from podium.lab.registry import subresources


@pytest.mark.parametrize(
    ("spec", "wanted", "allowed"),
    [
        ({"minAvailable": 2}, 2, 2),
        ({"minAvailable": "60%"}, 3, 1),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "0%"}, 4, 0),
        ({"minAvailable": 9}, 9, 0),
    ],
)
def test_a_budget_says_how_many_may_go(
    lab: ManagedCluster, spec: Json, wanted: int, allowed: int
) -> None:
    lab.create("Deployment", workload("web", 4))
    lab.create("PodDisruptionBudget", budget("web", "web", **spec))
    lab.settle()

    status = lab.status("PodDisruptionBudget", "web")
    assert status["expectedPods"] == 4
    assert status["currentHealthy"] == 4
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (wanted, allowed)


def test_an_eviction_is_refused_when_the_budget_is_used_up(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.create("PodDisruptionBudget", budget("web", "web", minAvailable=1))
    lab.settle()
    first, second = lab.names()
    subresources.evict(lab.registry, "default", first, {}, WriteOptions())

    with pytest.raises(StatusError) as refused:
        subresources.evict(lab.registry, "default", second, {}, WriteOptions())
    assert refused.value.code == 429
    lab.settle()
    subresources.evict(lab.registry, "default", second, {}, WriteOptions())
