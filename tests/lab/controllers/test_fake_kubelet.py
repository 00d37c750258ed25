"""The fake kubelet reports bound pods as created, running, finished and deleted."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import (
    Json,
    ManagedCluster,
    conditions,
    pod,
    workload,
)


def test_a_pod_that_is_bound_is_made_and_then_runs(lab: ManagedCluster) -> None:
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


def test_every_pod_has_an_address_of_its_own(lab: ManagedCluster) -> None:
    lab.create("ReplicaSet", workload("web", 30))
    lab.settle()
    lab.restart()
    lab.edit("ReplicaSet", "web", replicas=40)
    lab.settle()

    assert len({each["status"]["podIP"] for each in lab.pods()}) == 40


def test_a_pod_on_the_network_of_its_node_has_its_address(lab: ManagedCluster) -> None:
    lab.create("Pod", pod(hostNetwork=True))
    lab.settle()

    status = lab.get("Pod", "web")["status"]
    assert status["podIP"] == status["hostIP"]


def test_a_pod_stays_for_a_moment_when_it_is_deleted(lab: ManagedCluster) -> None:
    lab.create("Pod", pod())
    lab.settle()
    lab.delete("Pod", "web")
    lab.controllers.sync_ready()
    assert lab.names() == ["web"]
    lab.settle()

    assert lab.names() == []


def test_a_finalizer_holds_a_deleted_pod_back(lab: ManagedCluster) -> None:
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


def test_a_pod_may_say_when_and_how_it_ends(lab: ManagedCluster) -> None:
    made = pod(restartPolicy="Never")
    made["metadata"]["annotations"] = {"lab.podium/run-seconds": "3", "lab.podium/exit-code": "1"}
    lab.create("Pod", made)
    lab.settle(2)
    assert lab.get("Pod", "web")["status"]["phase"] == "Running"
    lab.settle(5)

    status = lab.get("Pod", "web")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
