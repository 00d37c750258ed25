"""Kubelets, nodes, garbage, namespaces, budgets, endpoints and volumes."""

from __future__ import annotations

from typing import Any

import pytest

from lab.at_work import AtWork, Json, template, workload
from podium.lab.api.options import WriteOptions
from podium.lab.api.status import StatusError
from podium.lab.controllers.nodes.node_lifecycle import wished_taints
from podium.lab.controllers.nodes.taint_eviction import leaves_at
from podium.lab.registry import eviction


@pytest.fixture
def lab() -> AtWork:
    return AtWork()


def pod(name: str = "web", **spec: Any) -> Json:
    made = template(name, **spec)
    made["metadata"] |= {"name": name, "namespace": "default"}
    return made


def conditions(item: Json) -> dict[str, str]:
    return {each["type"]: each["status"] for each in item["status"]["conditions"]}


def test_a_pod_that_is_bound_is_made_and_then_runs(lab: AtWork) -> None:
    seen: list[tuple[str, str]] = []

    def look(_: str, __: Any, new: Json | None) -> None:
        for each in (new or {}).get("status", {}).get("containerStatuses", ()):
            assert new is not None
            seen.append((new["status"]["phase"], next(iter(each["state"]))))

    lab.registry.subscribe(["Pod"], look)
    lab.create("Pod", pod())
    lab.settle()

    assert list(dict.fromkeys(seen)) == [("Pending", "waiting"), ("Running", "running")]
    found = lab.get("Pod", "web")
    node = lab.registry.get("Node", found["spec"]["nodeName"])
    assert found["status"]["hostIP"] == node["status"]["addresses"][0]["address"]
    assert found["status"]["podIP"].startswith("10.64.")
    assert found["status"]["startTime"]
    wanted = {"Initialized", "Ready", "ContainersReady", "PodScheduled"}
    assert wanted <= {kind for kind, value in conditions(found).items() if value == "True"}


def test_every_pod_has_an_address_of_its_own(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 30))
    lab.settle()
    lab.restart()
    lab.edit("ReplicaSet", "web", replicas=40)
    lab.settle()

    assert len({each["status"]["podIP"] for each in lab.pods()}) == 40


def test_a_pod_on_the_network_of_its_node_has_its_address(lab: AtWork) -> None:
    lab.create("Pod", pod(hostNetwork=True))
    lab.settle()

    status = lab.get("Pod", "web")["status"]
    assert status["podIP"] == status["hostIP"]


def test_a_pod_stays_for_a_moment_when_it_is_deleted(lab: AtWork) -> None:
    lab.create("Pod", pod())
    lab.settle()
    lab.delete("Pod", "web")
    lab.controllers.work()
    assert lab.names() == ["web"]
    lab.settle()

    assert lab.names() == []


def test_a_finalizer_holds_a_deleted_pod_back(lab: AtWork) -> None:
    made = pod()
    made["metadata"]["finalizers"] = ["example.com/mine"]
    lab.create("Pod", made)
    lab.settle()
    lab.delete("Pod", "web")
    lab.settle()
    assert lab.names() == ["web"]

    found = lab.get("Pod", "web")
    found["metadata"]["finalizers"] = []
    lab.registry.update("Pod", found)
    lab.settle()
    assert lab.names() == []


def test_a_pod_may_say_when_and_how_it_ends(lab: AtWork) -> None:
    made = pod(restartPolicy="Never")
    made["metadata"]["annotations"] = {"lab.podium/run-seconds": "3", "lab.podium/exit-code": "1"}
    lab.create("Pod", made)
    lab.settle(2)
    assert lab.get("Pod", "web")["status"]["phase"] == "Running"
    lab.settle(5)

    status = lab.get("Pod", "web")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


def test_a_bare_node_becomes_a_ready_one(lab: AtWork) -> None:
    node = lab.registry.get("Node", "n0")

    assert conditions(node)["Ready"] == "True"
    assert node["status"]["allocatable"]["pods"] == "110"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n0"


def test_a_node_that_says_what_it_is_stays_as_it_is(lab: AtWork) -> None:
    status = {
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "3"},
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "3"},
        "conditions": [{"type": "Ready", "status": "False"}],
    }
    lab.create("Node", {"metadata": {"name": "mine"}, "status": status})
    lab.settle()

    assert lab.registry.get("Node", "mine")["status"] == status


@pytest.mark.parametrize(
    ("kind", "value", "taints"),
    [
        ("Ready", "True", set()),
        ("Ready", "False", {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}),
        ("Ready", "Unknown", {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}),
        ("MemoryPressure", "True", {("memory-pressure", "NoSchedule")}),
        ("DiskPressure", "True", {("disk-pressure", "NoSchedule")}),
        ("PIDPressure", "True", {("pid-pressure", "NoSchedule")}),
        ("NetworkUnavailable", "True", {("network-unavailable", "NoSchedule")}),
        ("MemoryPressure", "False", set()),
    ],
)
def test_conditions_become_taints(kind: str, value: str, taints: set[tuple[str, str]]) -> None:
    own = {"key": "mine", "effect": "NoSchedule"}
    stale = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule", "value": ""}
    node = {
        "spec": {"taints": [own] + ([stale] if kind != "DiskPressure" else [])},
        "status": {"conditions": [{"type": kind, "status": value}]},
    }
    found = {(each["key"], each["effect"]) for each in wished_taints(node, "now")}

    assert found - {("mine", "NoSchedule")} == {
        (f"node.kubernetes.io/{name}", effect) for name, effect in taints
    }
    assert ("mine", "NoSchedule") in found


def test_a_cordoned_node_is_tainted_until_it_is_not(lab: AtWork) -> None:
    lab.edit("Node", "n0", unschedulable=True)
    lab.settle()
    [taint] = lab.registry.get("Node", "n0")["spec"]["taints"]
    assert taint["key"] == "node.kubernetes.io/unschedulable"
    lab.edit("Node", "n0", unschedulable=False)
    lab.settle()

    assert "taints" not in lab.registry.get("Node", "n0")["spec"]


def test_pods_leave_an_unreachable_node_after_their_patience(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()
    lost = [p["metadata"]["name"] for p in lab.pods() if p["spec"]["nodeName"] == "n0"]
    assert lost
    lab.node_is("n0", "Unknown")
    lab.settle(10)
    assert conditions(lab.get("Pod", lost[0]))["Ready"] == "False"
    assert "deletionTimestamp" not in lab.get("Pod", lost[0])["metadata"]
    lab.settle(300)

    # Deleted, but nobody on the node says that it is gone.
    assert "deletionTimestamp" in lab.get("Pod", lost[0])["metadata"]
    elsewhere = [p for p in lab.pods() if p["spec"].get("nodeName") != "n0"]
    assert len(elsewhere) == 3
    lab.node_is("n0", "True")
    lab.settle()
    assert lost[0] not in lab.names()


def test_pods_that_do_not_put_up_with_a_taint_leave_at_once(lab: AtWork) -> None:
    lab.create("Pod", pod("patient", tolerations=[{"operator": "Exists"}]))
    lab.create("Pod", pod("rash"))
    lab.binds = True
    lab.settle()
    for name in ("n0", "n1", "n2"):
        lab.edit("Node", name, taints=[{"key": "fire", "effect": "NoExecute"}])
    lab.settle()

    assert lab.names() == ["patient"]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 100.0),
        ([{"operator": "Exists"}], None),
        ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}], 100.0),
        (
            [
                {"key": "a", "operator": "Exists", "tolerationSeconds": 30},
                {"key": "b", "value": "x", "tolerationSeconds": 7},
            ],
            107.0,
        ),
        ([{"operator": "Exists", "tolerationSeconds": -5}], 100.0),
    ],
)
def test_the_shortest_patience_counts(tolerations: list[Json], expected: float | None) -> None:
    taints = [
        {"key": "a", "effect": "NoExecute"},
        {"key": "b", "value": "x", "effect": "NoExecute"},
    ]

    assert leaves_at(tolerations, taints, 100.0) == expected


def test_pods_of_a_node_that_is_gone_go_too(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 3))
    lab.settle()
    lab.registry.delete("Node", "n0")
    lab.settle(10)

    assert len(lab.pods()) == 3
    assert "n0" not in {each["spec"]["nodeName"] for each in lab.pods()}


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_what_a_deployment_made_goes_with_it(lab: AtWork, propagation: str) -> None:
    lab.create("Deployment", workload("web", 3))
    lab.settle()
    lab.delete("Deployment", "web", propagation)
    lab.settle()

    for kind in ("Deployment", "ReplicaSet", "Pod"):
        assert lab.registry.list(kind) == []


def test_in_the_foreground_the_owner_goes_last(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.settle()
    gone = lab.leaving("Deployment", "ReplicaSet", "Pod")
    lab.delete("Deployment", "web", "Foreground")
    lab.settle()

    assert [each["kind"] for each in gone] == ["Pod", "Pod", "ReplicaSet", "Deployment"]


def test_orphans_stay(lab: AtWork) -> None:
    lab.create("ReplicaSet", workload("web", 2))
    lab.settle()
    names = lab.names()
    lab.delete("ReplicaSet", "web", "Orphan")
    lab.settle()

    assert lab.registry.list("ReplicaSet") == []
    assert lab.names() == names
    assert "ownerReferences" not in lab.get("Pod", names[0])["metadata"]


def test_what_nobody_ever_owned_goes_when_its_owner_does_not_exist(lab: AtWork) -> None:
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


def test_a_namespace_goes_when_everything_in_it_is_gone(lab: AtWork) -> None:
    lab.create("Namespace", {"metadata": {"name": "shop"}})
    made = workload("web", 3)
    made["metadata"]["namespace"] = "shop"
    lab.create("Deployment", made)
    lab.create("ConfigMap", {"metadata": {"name": "settings", "namespace": "shop"}})
    lab.settle()
    assert len(lab.pods()) == 3
    lab.registry.delete("Namespace", "shop")
    lab.settle()

    assert lab.pods() == []
    with pytest.raises(StatusError):
        lab.registry.get("Namespace", "shop")


def budget(**spec: Any) -> Json:
    own = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": own}


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
def test_a_budget_says_how_many_may_go(lab: AtWork, spec: Json, wanted: int, allowed: int) -> None:
    lab.create("Deployment", workload("web", 4))
    lab.create("PodDisruptionBudget", budget(**spec))
    lab.settle()

    status = lab.status("PodDisruptionBudget", "web")
    assert status["expectedPods"] == 4
    assert status["currentHealthy"] == 4
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (wanted, allowed)


def test_an_eviction_is_refused_when_the_budget_is_used_up(lab: AtWork) -> None:
    lab.create("Deployment", workload("web", 2))
    lab.create("PodDisruptionBudget", budget(minAvailable=1))
    lab.settle()
    first, second = lab.names()
    eviction.evict(lab.registry, "default", first, {}, WriteOptions())

    with pytest.raises(StatusError) as refused:
        eviction.evict(lab.registry, "default", second, {}, WriteOptions())
    assert refused.value.code == 429
    lab.settle()
    eviction.evict(lab.registry, "default", second, {}, WriteOptions())


def test_a_service_knows_the_addresses_of_its_pods(lab: AtWork) -> None:
    ports = [{"port": 80, "targetPort": "http"}]
    lab.create(
        "Service",
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "web"}, "ports": ports},
        },
    )
    made = workload("web", 3)
    made["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"name": "http", "containerPort": 8080}
    ]
    lab.create("Deployment", made)
    lab.settle()

    [subset] = lab.get("Endpoints", "web")["subsets"]
    assert {each["ip"] for each in subset["addresses"]} == {
        each["status"]["podIP"] for each in lab.pods()
    }
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
    [part] = lab.registry.list("EndpointSlice")
    assert len(part["endpoints"]) == 3
    assert part["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    lab.edit("Deployment", "web", replicas=1)
    lab.settle()
    assert len(lab.registry.list("EndpointSlice")[0]["endpoints"]) == 1

    lab.delete("Service", "web")
    lab.settle()
    assert lab.registry.list("Endpoints") == []
    assert lab.registry.list("EndpointSlice") == []


def test_services_get_addresses_that_nobody_else_has(lab: AtWork) -> None:
    for number in range(3):
        metadata = {"name": f"s{number}", "namespace": "default"}
        lab.create("Service", {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    lab.settle()

    assert len({each["spec"]["clusterIP"] for each in lab.registry.list("Service")}) == 3


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> Json:
    own = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**own, **spec}}


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


def test_a_claim_takes_the_smallest_volume_that_suits(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class())
    for name, size in (("large", "100Gi"), ("small", "500Mi"), ("right", "2Gi")):
        lab.create("PersistentVolume", volume(name, size))
    lab.create("PersistentVolume", volume("other", "1Gi", storageClassName="slow"))
    lab.create("PersistentVolumeClaim", claim(storageClassName="disks"))
    lab.settle()

    assert lab.get("PersistentVolumeClaim", "data")["spec"]["volumeName"] == "right"
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Bound"
    assert lab.get("PersistentVolume", "right", "")["status"]["phase"] == "Bound"
    assert lab.get("PersistentVolume", "large", "")["status"]["phase"] == "Available"


def test_a_claim_waits_for_a_volume_that_suits(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolumeClaim", claim(storageClassName="disks"))
    lab.settle()
    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    lab.create("PersistentVolume", volume("right", "2Gi"))
    lab.settle()

    assert lab.status("PersistentVolumeClaim", "data")["phase"] == "Bound"


def test_two_claims_never_share_a_volume(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolume", volume("one", "2Gi"))
    for name in ("a", "b"):
        lab.create("PersistentVolumeClaim", claim(name, storageClassName="disks"))
    lab.settle()

    phases = [each["status"]["phase"] for each in lab.registry.list("PersistentVolumeClaim")]
    assert sorted(phases) == ["Bound", "Pending"]


def test_a_class_of_the_lab_makes_a_volume_and_takes_it_back(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class("made", "lab.podium/volumes"))
    lab.create("PersistentVolumeClaim", claim(storageClassName="made"))
    lab.settle()

    [made] = lab.registry.list("PersistentVolume")
    assert made["spec"]["claimRef"]["name"] == "data"
    assert made["spec"]["capacity"] == {"storage": "1Gi"}
    lab.delete("PersistentVolumeClaim", "data")
    lab.settle()
    assert lab.registry.list("PersistentVolume") == []


def test_a_late_claim_waits_for_the_node_and_gets_a_volume_in_its_zone(lab: AtWork) -> None:
    node = lab.registry.get("Node", "n0")
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a"
    lab.registry.update("Node", node)
    late = storage_class("made", "lab.podium/volumes", "WaitForFirstConsumer")
    lab.create("StorageClass", late)
    lab.create("PersistentVolumeClaim", claim(storageClassName="made"))
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


def test_a_volume_that_the_scheduler_promised_is_bound(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class(mode="WaitForFirstConsumer"))
    lab.create("PersistentVolumeClaim", claim(storageClassName="disks"))
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


def test_a_volume_that_is_kept_is_released_when_its_claim_goes(lab: AtWork) -> None:
    lab.create("StorageClass", storage_class())
    lab.create("PersistentVolume", volume("right", "2Gi"))
    lab.create("PersistentVolumeClaim", claim(storageClassName="disks"))
    lab.settle()
    lab.delete("PersistentVolumeClaim", "data")
    lab.settle()

    assert lab.registry.get("PersistentVolume", "right")["status"]["phase"] == "Released"
