"""Daemon sets keep one pod on every eligible node."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import Json, ManagedCluster, template, workload
from podium.lab.controllers.workloads.controller_revisions import HASH_LABEL


def daemon(name: str = "agent", **spec: Any) -> Json:
    return workload(name, **spec)


def nodes_of(lab: ManagedCluster) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in lab.pods())


def test_a_daemon_set_puts_one_pod_on_each_node(lab: ManagedCluster) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()

    assert nodes_of(lab) == ["n0", "n1", "n2"]
    status = lab.status("DaemonSet", "agent")
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (3, 3)


def test_its_pods_can_go_to_their_node_only_and_stay_in_bad_times(lab: ManagedCluster) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    [pod] = [pod for pod in lab.pods() if pod["spec"]["nodeName"] == "n1"]

    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert terms == [{"matchFields": [field]}]
    tolerated = {each["key"] for each in pod["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated


def test_it_follows_nodes_that_come_and_labels_that_change(lab: ManagedCluster) -> None:
    made = daemon()
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    lab.create("DaemonSet", made)
    lab.settle()
    assert lab.pods() == []
    lab.create("Node", {"metadata": {"name": "n9", "labels": {"disk": "fast"}}})
    lab.settle()
    assert nodes_of(lab) == ["n9"]

    node = lab.registry.get("Node", "n9")
    node["metadata"]["labels"]["disk"] = "slow"
    lab.registry.update("Node", node)
    lab.settle()
    assert lab.pods() == []


def test_a_taint_keeps_daemons_from_coming_and_only_some_taints_drive_them_away(
    lab: ManagedCluster,
) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    for effect, left in (("NoSchedule", 3), ("NoExecute", 2)):
        node = lab.registry.get("Node", "n0")
        node["spec"]["taints"] = [{"key": "k", "value": "v", "effect": effect}]
        lab.registry.update("Node", node)
        lab.settle()
        assert len(lab.pods()) == left


def test_a_cordoned_node_gets_its_daemon(lab: ManagedCluster) -> None:
    lab.edit("Node", "n0", unschedulable=True)
    lab.settle()
    lab.create("DaemonSet", daemon())
    lab.settle()

    assert nodes_of(lab) == ["n0", "n1", "n2"]


def test_a_new_template_reaches_one_node_after_the_other(lab: ManagedCluster) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    leaving: list[int] = []

    def look(*_: object) -> None:
        leaving.append(
            3
            - sum(
                pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]
                for pod in lab.pods()
            )
        )

    lab.registry.subscribe(["Pod"], look)
    lab.edit("DaemonSet", "agent", template=template("agent", "app:2"))
    lab.settle(30)

    assert {pod["spec"]["containers"][0]["image"] for pod in lab.pods()} == {"app:2"}
    assert max(leaving) == 1
    assert lab.status("DaemonSet", "agent")["updatedNumberScheduled"] == 3


def test_daemons_of_another_cluster_are_taken_to_be_up_to_date() -> None:
    lab = ManagedCluster()
    lab.create("DaemonSet", daemon())
    lab.settle()
    for revision in lab.registry.list("ControllerRevision"):
        lab.delete("ControllerRevision", revision["metadata"]["name"])
    for pod in lab.pods():
        pod["metadata"]["labels"][HASH_LABEL] = "elsewhere"
        lab.registry.update("Pod", pod)
    names = lab.names()
    lab.restart()
    lab.settle(30)

    assert lab.names() == names
    assert lab.status("DaemonSet", "agent")["updatedNumberScheduled"] == 3


def test_a_revision_is_written_with_its_keys_in_order(lab: ManagedCluster) -> None:
    """Clients make the patch of a template again and compare it byte by byte."""
    lab.create("DaemonSet", daemon())
    lab.settle()
    [revision] = lab.registry.list("ControllerRevision")

    def ordered(value: object) -> bool:
        if isinstance(value, dict):
            return list(value) == sorted(value) and all(map(ordered, value.values()))
        return all(map(ordered, value)) if isinstance(value, list) else True

    assert ordered(revision["data"])
    assert next(iter(revision["data"]["spec"]["template"])) == "$patch"


def test_a_matching_orphan_is_adopted_when_it_appears(lab: ManagedCluster) -> None:
    made = daemon()
    lab.create("DaemonSet", made)
    lab.settle()
    spec = {**made["spec"]["template"]["spec"], "nodeName": "n1"}
    labels = made["spec"]["template"]["metadata"]["labels"]
    lab.create("Pod", {"metadata": {"name": "orphan", "labels": labels}, "spec": spec})
    lab.settle()

    # It is younger than the daemon of its node, and goes as a duplicate.
    assert "orphan" not in [pod["metadata"]["name"] for pod in lab.pods()]
    assert nodes_of(lab) == ["n0", "n1", "n2"]
