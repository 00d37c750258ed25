"""Claims are bound to volumes that fit or are provisioned."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import Json, ManagedCluster
from manifests import claim


def volume(name: str, size: str, **spec: Any) -> Json:
    own = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/data"},
        "storageClassName": "disks",
    }
    return {"metadata": {"name": name}, "spec": {**own, **spec}}


def storage_class(
    name: str = "disks", provisioner: str = "kubernetes.io/no-provisioner", mode: str = "Immediate"
) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def test_a_claim_takes_the_smallest_volume_that_suits(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class())
    for name, size in (("large", "100Gi"), ("small", "500Mi"), ("right", "2Gi")):
        lab.create("PersistentVolume", volume(name, size))
    lab.create("PersistentVolume", volume("other", "1Gi", storageClassName="slow"))
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="disks"))
    lab.settle()

    assert lab.get("PersistentVolumeClaim", "data")["spec"]["volumeName"] == "right"
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Bound"
    assert lab.get("PersistentVolume", "right", "")["status"]["phase"] == "Bound"
    assert lab.get("PersistentVolume", "large", "")["status"]["phase"] == "Available"


def test_a_claim_waits_for_a_volume_that_suits(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="disks"))
    lab.settle()
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    lab.create("PersistentVolume", volume("right", "2Gi"))
    lab.settle()

    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Bound"


def test_two_claims_never_share_a_volume(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolume", volume("one", "2Gi"))
    for name in ("a", "b"):
        lab.create("PersistentVolumeClaim", claim(name, storageClassName="disks"))
    lab.settle()

    phases = [each["status"]["phase"] for each in lab.registry.list("PersistentVolumeClaim")]
    assert sorted(phases) == ["Bound", "Pending"]


def test_a_class_of_the_lab_makes_a_volume_and_takes_it_back(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class("made", "lab.podium/volumes"))
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="made"))
    lab.settle()

    [made] = lab.registry.list("PersistentVolume")
    assert made["spec"]["claimRef"]["name"] == "data"
    assert made["spec"]["capacity"] == {"storage": "1Gi"}
    lab.delete("PersistentVolumeClaim", "data")
    lab.settle()
    assert lab.registry.list("PersistentVolume") == []


def test_a_late_claim_waits_for_the_node_and_gets_a_volume_in_its_zone(lab: ManagedCluster) -> None:
    node = lab.registry.get("Node", "n0")
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a"
    lab.registry.update("Node", node)
    late = storage_class("made", "lab.podium/volumes", "WaitForFirstConsumer")
    lab.create("StorageClass", late)
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="made"))
    lab.settle()
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Pending"

    found = lab.get("PersistentVolumeClaim", "data")
    found["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n0"}
    lab.registry.update("PersistentVolumeClaim", found)
    lab.settle()
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Bound"
    [made] = lab.registry.list("PersistentVolume")
    [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["a"]


def test_a_volume_that_the_scheduler_promised_is_bound(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class(mode="WaitForFirstConsumer"))
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="disks"))
    lab.create("PersistentVolume", volume("right", "2Gi"))
    lab.settle()
    found = lab.registry.get("PersistentVolume", "right")
    uid = lab.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    found["spec"]["claimRef"] = {
        "namespace": "default",
        "name": "data",
        "uid": uid,
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
    }
    lab.registry.update("PersistentVolume", found)
    lab.settle()

    assert lab.get("PersistentVolumeClaim", "data")["spec"]["volumeName"] == "right"


def test_a_volume_that_is_kept_is_released_when_its_claim_goes(lab: ManagedCluster) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolume", volume("right", "2Gi"))
    lab.create("PersistentVolumeClaim", claim("data", storageClassName="disks"))
    lab.settle()
    lab.delete("PersistentVolumeClaim", "data")
    lab.settle()

    assert lab.registry.get("PersistentVolume", "right")["status"]["phase"] == "Released"
