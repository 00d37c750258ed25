"""Objects are deleted with their owners: in the background, in the foreground, or orphaned."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import ManagedCluster, pod, workload


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_what_a_deployment_made_goes_with_it(lab: ManagedCluster, propagation: str) -> None:
    lab.create("Deployment", workload("web", 3))
    lab.settle()
    lab.delete("Deployment", "web", propagation)
    lab.settle()

    for kind in ("Deployment", "ReplicaSet", "Pod"):
        assert lab.registry.list(kind) == []


def test_in_the_foreground_the_owner_goes_last(lab: ManagedCluster) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    gone = lab.leaving("Deployment", "ReplicaSet", "Pod")
    lab.delete("Deployment", "web", "Foreground")
    lab.settle()

    assert [each["kind"] for each in gone] == ["Pod", "Pod", "ReplicaSet", "Deployment"]


def test_orphans_stay(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()
    names = lab.names()
    lab.delete("ReplicaSet", "web", "Orphan")
    lab.settle()

    assert lab.registry.list("ReplicaSet") == []
    assert lab.names() == names
    assert "ownerReferences" not in lab.get("Pod", names[0])["metadata"]


def test_what_nobody_ever_owned_goes_when_its_owner_does_not_exist(lab: ManagedCluster) -> None:
    made = pod()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "gone"}
    made["metadata"]["ownerReferences"] = [owner]
    lab.create("Pod", made)
    other = pod("foreign")
    foreign = {"apiVersion": "example.com/v1", "kind": "Rollout", "name": "x", "uid": "unknown"}
    other["metadata"]["ownerReferences"] = [foreign]
    lab.create("Pod", other)
    lab.settle()

    assert lab.names() == ["foreign"]
