"""Deployments roll out new templates within their limits, in steps whose numbers are known."""

from __future__ import annotations

from typing import Any

import pytest

from lab.controllers.managed_cluster import ManagedCluster, template, workload
from podium.lab.controllers.workloads.deployments import (
    ReplicaCounts,
    RolloutLimits,
    recreate_step,
    rolling_step,
    rollout_limits,
    scale_proportionally,
)


def replica_sets(lab: ManagedCluster) -> dict[str, int]:
    """Replicas by image."""
    return {
        each["spec"]["template"]["spec"]["containers"][0]["image"]: each["spec"]["replicas"]
        for each in lab.registry.list("ReplicaSet")
    }


def test_a_deployment_makes_a_replica_set_named_after_its_template(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 3))
    lab.settle()

    [made] = lab.registry.list("ReplicaSet")
    tag = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{tag}"
    assert made["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert len(lab.pods(**{"pod-template-hash": tag})) == 3
    assert lab.condition("Deployment", "web", "Available")["status"] == "True"
    assert lab.condition("Deployment", "web", "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert lab.status("Deployment", "web")["observedGeneration"] == 1


def test_a_rolling_update_ends_with_the_new_template_alone(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 4))
    lab.settle()
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 0, "app:2": 4}
    images = {pod["spec"]["containers"][0]["image"] for pod in lab.pods()}
    assert images == {"app:2"}
    annotations = lab.get("Deployment", "web")["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "2"
    status = lab.status("Deployment", "web")
    assert (status["updatedReplicas"], status["availableReplicas"]) == (4, 4)


def test_a_rolling_update_never_leaves_its_limits(lab: ManagedCluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    lab.create("Deployment", workload("web", 5, strategy=rolling))
    lab.settle()
    seen: list[tuple[int, int]] = []

    def look(*_: object) -> None:
        alive = [pod for pod in lab.pods() if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in alive if pod["status"].get("phase") == "Running"]
        seen.append((len(alive), len(ready)))

    lab.registry.subscribe(["Pod"], look)
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(60)

    assert replica_sets(lab) == {"app:1": 0, "app:2": 5}
    assert max(alive for alive, _ in seen) <= 6
    assert min(ready for _, ready in seen) >= 4


def test_a_rollout_that_cannot_go_on_says_so_after_its_deadline(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2, progressDeadlineSeconds=30))
    lab.settle()
    lab.binds = False
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(60)

    stuck = lab.condition("Deployment", "web", "Progressing")
    assert (stuck["status"], stuck["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert lab.condition("Deployment", "web", "Available")["status"] == "True"


def test_going_back_takes_the_old_replica_set_again(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(30)
    lab.edit("Deployment", "web", template=template("web", "app:1"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 2, "app:2": 0}
    annotations = lab.get("Deployment", "web")["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"


def test_recreate_makes_nothing_new_before_the_old_is_gone(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 3, strategy={"type": "Recreate"}))
    lab.settle()
    together: list[set[str]] = []

    def look(*_: object) -> None:
        together.append({pod["spec"]["containers"][0]["image"] for pod in lab.pods()})

    lab.registry.subscribe(["Pod"], look)
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 0, "app:2": 3}
    assert {"app:1", "app:2"} not in together


def test_a_paused_deployment_follows_its_number_and_not_its_template(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    lab.edit("Deployment", "web", paused=True, template=template("web", "app:2"), replicas=4)
    lab.settle()
    assert replica_sets(lab) == {"app:1": 4}
    lab.edit("Deployment", "web", paused=False)
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 0, "app:2": 4}


def test_a_deployment_that_is_created_paused_has_no_pods(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2, paused=True))
    lab.settle()
    assert lab.names() == []

    lab.edit("Deployment", "web", paused=False)
    lab.settle()
    assert len(lab.names()) == 2


def test_only_so_many_old_replica_sets_are_kept(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 1, revisionHistoryLimit=2))
    for number in range(2, 6):
        lab.settle(30)
        lab.edit("Deployment", "web", template=template("web", f"app:{number}"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:3": 0, "app:4": 0, "app:5": 1}


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
