"""Replica sets and replication controllers keep the number of pods they ask for."""

from __future__ import annotations

from lab.controllers.managed_cluster import ManagedCluster, pod, workload


def test_a_replica_set_makes_its_pods_and_says_how_many_run(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()

    assert len(lab.pods(app="web")) == 3
    assert {pod["status"]["phase"] for pod in lab.pods()} == {"Running"}
    status = lab.status("ReplicaSet", "web")
    numbers = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    assert [status[number] for number in numbers] == [3, 3, 3, 3]


def test_a_pod_that_is_deleted_is_replaced(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()
    first = lab.names()[0]
    lab.delete("Pod", first)
    lab.settle()

    assert first not in lab.names()
    assert len(lab.names()) == 2


def test_a_pod_that_failed_is_replaced_and_stays_to_be_looked_at(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 1))
    lab.settle()
    [name] = lab.names()
    lab.report("Pod", name, {"phase": "Failed"})
    lab.settle()

    assert len(lab.names()) == 2
    assert name in lab.names()


def test_when_there_are_too_many_those_that_wait_go_first(lab: ManagedCluster) -> None:
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


def test_a_pod_whose_labels_are_changed_is_let_go_and_replaced(lab: ManagedCluster) -> None:
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


def test_a_pod_that_fits_is_adopted(lab: ManagedCluster) -> None:
    alone = pod("web")
    alone["metadata"]["name"] = "alone"
    lab.create("Pod", alone)
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()

    assert len(lab.names()) == 2
    [owner] = lab.get("Pod", "alone")["metadata"]["ownerReferences"]
    assert owner["name"] == "web"


def test_a_replication_controller_does_the_same(lab: ManagedCluster) -> None:
    made = workload("old", 2)
    made["spec"]["selector"] = {"app": "old"}
    lab.create("ReplicationController", made)
    lab.settle()

    assert lab.status("ReplicationController", "old")["readyReplicas"] == 2


def test_pods_that_are_refused_are_told_of_and_tried_again(lab: ManagedCluster) -> None:
    made = workload("web", 1)
    made["spec"]["template"]["spec"]["priorityClassName"] = "later"
    lab.create("ReplicaSet", made)
    lab.controllers.sync_ready()

    assert lab.condition("ReplicaSet", "web", "ReplicaFailure")["reason"] == "FailedCreate"
    lab.create("PriorityClass", {"metadata": {"name": "later"}, "value": 5})
    lab.settle()
    assert len(lab.names()) == 1
    assert lab.condition("ReplicaSet", "web", "ReplicaFailure") == {}


def test_pods_count_as_available_only_after_a_while(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 1, minReadySeconds=20))
    lab.settle(10)
    assert lab.status("Deployment", "web").get("availableReplicas", 0) == 0
    lab.settle(20)

    assert lab.status("Deployment", "web")["availableReplicas"] == 1


def test_a_large_set_is_made_in_turns_with_others(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("large", 250))
    lab.create("ReplicaSet", workload("small", 1))
    for _ in range(8):
        lab.controllers.sync_ready(until=-1.0)

    assert lab.names(app="small")
    lab.settle()
    assert len(lab.names(app="large")) == 250
