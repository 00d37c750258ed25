"""Replica sets, replication controllers, deployments: as many pods as wished, and changing them."""

from __future__ import annotations

from typing import Any

import pytest

from lab.at_work import AtWork, template, workload
from podium.lab.controllers.workloads.deployment_rollout import (
    Limits,
    Standing,
    limits,
    recreated,
    rolled,
    spread,
)


@pytest.fixture
def lab() -> AtWork:
    return AtWork()


def replica_sets(lab: AtWork) -> dict[str, int]:
    """Replicas by image."""
    return {
        each["spec"]["template"]["spec"]["containers"][0]["image"]: each["spec"]["replicas"]
        for each in lab.registry.list("ReplicaSet")
    }


def test_a_replica_set_makes_its_pods_and_says_how_many_run(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()

    assert len(lab.pods(app="web")) == 3
    assert {pod["status"]["phase"] for pod in lab.pods()} == {"Running"}
    status = lab.status("ReplicaSet", "web")
    numbers = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    assert [status[number] for number in numbers] == [3, 3, 3, 3]


def test_a_pod_that_is_deleted_is_replaced(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()
    first = lab.names()[0]
    lab.delete("Pod", first)
    lab.settle()

    assert first not in lab.names()
    assert len(lab.names()) == 2


def test_a_pod_that_failed_is_replaced_and_stays_to_be_looked_at(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 1))
    lab.settle()
    [name] = lab.names()
    lab.report("Pod", name, {"phase": "Failed"})
    lab.settle()

    assert len(lab.names()) == 2
    assert name in lab.names()


def test_when_there_are_too_many_those_that_wait_go_first(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()
    running = set(lab.names())
    lab.binds = False
    lab.edit("ReplicaSet", "web", replicas=4)
    lab.settle()
    assert len(lab.names()) == 4
    lab.edit("ReplicaSet", "web", replicas=2)
    lab.settle()

    assert set(lab.names()) == running


def test_a_pod_whose_labels_are_changed_is_let_go_and_replaced(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 1))
    lab.settle()
    [name] = lab.names()
    pod = lab.get("Pod", name)
    pod["metadata"]["labels"]["app"] = "quarantine"
    lab.registry.update("Pod", pod)
    lab.settle()

    assert lab.names(app="quarantine") == [name]
    assert "ownerReferences" not in lab.get("Pod", name)["metadata"]
    assert len(lab.names(app="web")) == 1


def test_a_pod_that_fits_is_adopted(lab: AtWork) -> None:
    lab.create(
        "Pod",
        {"metadata": {"name": "alone", "namespace": "default"}, **template("web")}
        | {"metadata": {"name": "alone", "namespace": "default", "labels": {"app": "web"}}},
    )
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()

    assert len(lab.names()) == 2
    [owner] = lab.get("Pod", "alone")["metadata"]["ownerReferences"]
    assert owner["name"] == "web"


def test_a_replication_controller_does_the_same(lab: AtWork) -> None:
    made = workload("old", 2)
    made["spec"]["selector"] = {"app": "old"}
    lab.create("ReplicationController", made)
    lab.settle()

    assert lab.status("ReplicationController", "old")["readyReplicas"] == 2


def test_pods_that_are_refused_are_told_of_and_tried_again(lab: AtWork) -> None:
    made = workload("web", 1)
    made["spec"]["template"]["spec"]["priorityClassName"] = "later"
    lab.create("ReplicaSet", made)
    lab.controllers.work()

    assert lab.condition("ReplicaSet", "web", "ReplicaFailure")["reason"] == "FailedCreate"
    lab.create("PriorityClass", {"metadata": {"name": "later"}, "value": 5})
    lab.settle()
    assert len(lab.names()) == 1
    assert lab.condition("ReplicaSet", "web", "ReplicaFailure") == {}


def test_a_deployment_makes_a_replica_set_named_after_its_template(lab: AtWork) -> None:
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


def test_a_rolling_update_ends_with_the_new_template_alone(lab: AtWork) -> None:
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


def test_a_rolling_update_never_leaves_its_limits(lab: AtWork) -> None:
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


def test_a_rollout_that_cannot_go_on_says_so_after_its_deadline(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 2, progressDeadlineSeconds=30))
    lab.settle()
    lab.binds = False
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(60)

    stuck = lab.condition("Deployment", "web", "Progressing")
    assert (stuck["status"], stuck["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert lab.condition("Deployment", "web", "Available")["status"] == "True"


def test_going_back_takes_the_old_replica_set_again(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    lab.edit("Deployment", "web", template=template("web", "app:2"))
    lab.settle(30)
    lab.edit("Deployment", "web", template=template("web", "app:1"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 2, "app:2": 0}
    annotations = lab.get("Deployment", "web")["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"


def test_recreate_makes_nothing_new_before_the_old_is_gone(lab: AtWork) -> None:
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


def test_a_paused_deployment_follows_its_number_and_not_its_template(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    lab.edit("Deployment", "web", paused=True, template=template("web", "app:2"), replicas=4)
    lab.settle()
    assert replica_sets(lab) == {"app:1": 4}
    lab.edit("Deployment", "web", paused=False)
    lab.settle(30)

    assert replica_sets(lab) == {"app:1": 0, "app:2": 4}


def test_only_so_many_old_replica_sets_are_kept(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 1, revisionHistoryLimit=2))
    for number in range(2, 6):
        lab.settle(30)
        lab.edit("Deployment", "web", template=template("web", f"app:{number}"))
    lab.settle(30)

    assert replica_sets(lab) == {"app:3": 0, "app:4": 0, "app:5": 1}


def test_pods_count_as_available_only_after_a_while(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 1, minReadySeconds=20))
    lab.settle(10)
    assert lab.status("Deployment", "web").get("availableReplicas", 0) == 0
    lab.settle(20)

    assert lab.status("Deployment", "web")["availableReplicas"] == 1


def test_a_large_set_is_made_in_turns_with_others(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("large", 250))
    lab.create("ReplicaSet", workload("small", 1))
    for _ in range(8):
        lab.controllers.work(until=-1.0)

    assert lab.names(app="small")
    lab.settle()
    assert len(lab.names(app="large")) == 250


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        (4, {}, Limits(1, 1)),
        (1, {}, Limits(1, 0)),
        (10, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, Limits(0, 1)),
        (10, {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 3}}, Limits(5, 3)),
        (3, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 100}}, Limits(0, 3)),
    ],
)
def test_limits_round_surge_up_and_unavailable_down(
    replicas: int, strategy: Any, expected: Limits
) -> None:
    assert limits(replicas, strategy) == expected


def test_a_step_scales_up_first_then_down_as_far_as_pods_are_available() -> None:
    bounds = Limits(1, 1)

    assert rolled(4, Standing(0, 0, 0), [Standing(4, 4, 4)], bounds) == [1, 4]
    assert rolled(4, Standing(1, 1, 0), [Standing(4, 4, 4)], bounds) == [1, 3]
    assert rolled(4, Standing(1, 1, 1), [Standing(3, 3, 3)], bounds) == [2, 3]
    assert rolled(4, Standing(4, 4, 4), [Standing(1, 1, 1)], bounds) == [4, 0]


def test_pods_that_do_not_run_anyway_go_first() -> None:
    stuck, fine = Standing(2, 2, 0), Standing(2, 2, 2)

    assert rolled(4, Standing(1, 1, 0), [fine, stuck], Limits(1, 1)) == [1, 2, 1]


def test_recreating_waits_for_pods_that_are_leaving() -> None:
    assert recreated(3, None, [Standing(3, 3, 3)]) == [0, 0]
    assert recreated(3, None, [Standing(0, 1, 0)]) == [0, 0]
    assert recreated(3, None, [Standing(0, 0, 0)]) == [3, 0]


def test_scaling_in_the_middle_of_a_rollout_is_shared() -> None:
    assert spread(10, [2, 3], 0) == [4, 6]
    assert sum(spread(7, [3, 3], 1)) == 8
    assert spread(0, [2, 3], 1) == [0, 0]
