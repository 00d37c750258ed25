"""Stateful sets keep numbered pods with their claims."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import Json, ManagedCluster, template, workload
from manifests import claim


def stateful(name: str, replicas: int, **spec: Any) -> Json:
    return workload(name, replicas, serviceName=name, **spec)


def test_a_stateful_set_makes_its_pods_one_after_the_other(lab: ManagedCluster) -> None:
    waiting: list[int] = []

    def look(*_: object) -> None:
        waiting.append(sum(pod["status"].get("phase") != "Running" for pod in lab.pods()))

    lab.registry.subscribe(["Pod"], look)
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()

    assert lab.names() == ["db-0", "db-1", "db-2"]
    assert max(waiting) == 1
    first = lab.get("Pod", "db-0")
    assert first["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("db-0", "db")


def test_a_parallel_one_makes_them_all_at_once(lab: ManagedCluster) -> None:
    lab.binds = False
    lab.create("StatefulSet", stateful("db", 3, podManagementPolicy="Parallel"))
    lab.settle()

    assert lab.names() == ["db-0", "db-1", "db-2"]


def test_it_waits_for_a_pod_that_is_not_ready(lab: ManagedCluster) -> None:
    lab.binds = False
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()

    assert lab.names() == ["db-0"]


def test_claims_are_made_once_and_outlive_the_pods(lab: ManagedCluster) -> None:
    lab.create("StatefulSet", stateful("db", 2, volumeClaimTemplates=[claim("data")]))
    lab.settle()
    lab.edit("StatefulSet", "db", replicas=1)
    lab.settle()

    assert lab.names() == ["db-0"]
    claims = [each["metadata"]["name"] for each in lab.registry.list("PersistentVolumeClaim")]
    assert claims == ["data-db-0", "data-db-1"]
    [volume] = lab.get("Pod", "db-0")["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-db-0"


def test_a_claim_that_cannot_be_made_is_told_and_its_pod_waits(lab: ManagedCluster) -> None:
    """The API server accepts a template of claims without a name."""
    lab.create("StatefulSet", stateful("db", 1, volumeClaimTemplates=[{"spec": {}}]))
    lab.settle()

    assert lab.names() == []
    claim, pod = (each["message"] for each in lab.registry.list("Event")[:2])
    why = 'PersistentVolumeClaim "-db-0" is invalid'
    assert claim.startswith(
        f"create Claim -db-0 for Pod db-0 in StatefulSet db failed error: {why}"
    )
    text = "create Pod db-0 in StatefulSet db failed error: failed to create PVC -db-0: "
    assert pod.startswith(text + why)


def test_the_highest_number_goes_first(lab: ManagedCluster) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    gone = lab.leaving("Pod")
    lab.edit("StatefulSet", "db", replicas=0)
    lab.settle()

    assert [each["metadata"]["name"] for each in gone] == ["db-2", "db-1", "db-0"]


def test_a_new_template_replaces_from_the_highest_number_down(lab: ManagedCluster) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    before = lab.status("StatefulSet", "db")["updateRevision"]
    gone = lab.leaving("Pod")
    lab.edit("StatefulSet", "db", template=template("db", "app:2"))
    lab.settle(30)

    assert [each["metadata"]["name"] for each in gone] == ["db-2", "db-1", "db-0"]
    status = lab.status("StatefulSet", "db")
    assert status["currentRevision"] == status["updateRevision"] != before
    assert status["updatedReplicas"] == 3
    revisions = lab.registry.list("ControllerRevision")
    assert sorted(each["revision"] for each in revisions) == [1, 2]


def test_pods_below_the_partition_stay_as_they_are(lab: ManagedCluster) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    lab.edit("StatefulSet", "db", template=template("db", "app:2"), updateStrategy=rolling)
    lab.settle(30)
    lab.delete("Pod", "db-0")
    lab.settle(30)

    images = [pod["spec"]["containers"][0]["image"] for pod in lab.pods()]
    assert images == ["app:1", "app:1", "app:2"]
