"""The numbers of a rollout, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from podium.lab.controllers.workloads.deployments import (
    ReplicaCounts,
    RolloutLimits,
    recreate_step,
    rolling_step,
    rollout_limits,
    scale_proportionally,
)


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        (4, {}, RolloutLimits(1, 1)),
        (1, {}, RolloutLimits(1, 0)),
        (10, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, RolloutLimits(0, 1)),
        (10, {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 3}}, RolloutLimits(5, 3)),
        (3, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 100}}, RolloutLimits(0, 3)),
    ],
)
def test_limits_round_surge_up_and_unavailable_down(
    replicas: int, strategy: Any, expected: RolloutLimits
) -> None:
    assert rollout_limits(replicas, strategy) == expected


def test_a_step_scales_up_first_then_down_as_far_as_pods_are_available() -> None:
    bounds = RolloutLimits(1, 1)

    assert rolling_step(4, ReplicaCounts(0, 0, 0), [ReplicaCounts(4, 4, 4)], bounds) == [1, 4]
    assert rolling_step(4, ReplicaCounts(1, 1, 0), [ReplicaCounts(4, 4, 4)], bounds) == [1, 3]
    assert rolling_step(4, ReplicaCounts(1, 1, 1), [ReplicaCounts(3, 3, 3)], bounds) == [2, 3]
    assert rolling_step(4, ReplicaCounts(4, 4, 4), [ReplicaCounts(1, 1, 1)], bounds) == [4, 0]


def test_pods_that_do_not_run_anyway_go_first() -> None:
    stuck, fine = ReplicaCounts(2, 2, 0), ReplicaCounts(2, 2, 2)

    assert rolling_step(4, ReplicaCounts(1, 1, 0), [fine, stuck], RolloutLimits(1, 1)) == [1, 2, 1]


def test_recreating_waits_for_pods_that_are_leaving() -> None:
    assert recreate_step(3, None, [ReplicaCounts(3, 3, 3)]) == [0, 0]
    assert recreate_step(3, None, [ReplicaCounts(0, 1, 0)]) == [0, 0]
    assert recreate_step(3, None, [ReplicaCounts(0, 0, 0)]) == [3, 0]


def test_scaling_in_the_middle_of_a_rollout_is_shared() -> None:
    assert scale_proportionally(10, [2, 3], 0) == [4, 6]
    assert sum(scale_proportionally(7, [3, 3], 1)) == 8
    assert scale_proportionally(0, [2, 3], 1) == [0, 0]
