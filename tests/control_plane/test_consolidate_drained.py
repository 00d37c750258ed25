"""The commands that `podium plan --consolidate` prints, carried out on a real API server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.harness import ADMIN, PODS, ControlPlane
from podium.cli.main import run

APPS = "/apis/apps/v1/namespaces/default"
SELECTOR = {"matchLabels": {"app": "web"}}
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}


def placed(plane: ControlPlane, name: str, node: str, owner: Any, **spec: Any) -> None:
    """A pod on a node. It ends at once when it is evicted: there is no kubelet."""
    about: dict[str, Any] = {"name": name, "labels": {"app": "web"}}
    if owner is not None:
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        about["ownerReferences"] = [reference]
    made = {"containers": [CONTAINER], "terminationGracePeriodSeconds": 0, **spec}
    plane.post(PODS, {"metadata": about, "spec": made})
    target = {"kind": "Node", "name": node}
    plane.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Three nodes of which one would do; a pod of a daemon, one with local storage, a bare one."""
    control_plane.clear_nodes()
    made: list[str] = []

    def created(plural: str, kind: str, spec: dict[str, Any]) -> Any:
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": plural}, "spec": spec}
        made.append(f"{APPS}/{plural}/{plural}")
        return control_plane.post(f"{APPS}/{plural}", body)

    for name in ("n1", "n2", "n3"):
        control_plane.add_node(name, {}, "4")
    workload = {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}
    replicas = created("replicasets", "ReplicaSet", workload)
    daemons = created("daemonsets", "DaemonSet", {"selector": SELECTOR, "template": TEMPLATE})
    scratch = [{"name": "scratch", "emptyDir": {}}]
    placed(control_plane, "web-1", "n1", replicas)
    placed(control_plane, "web-2", "n2", replicas, volumes=scratch)
    placed(control_plane, "agent-2", "n2", daemons)
    placed(control_plane, "web-3", "n3", replicas)
    placed(control_plane, "bare", "n3", None)
    yield control_plane
    control_plane.clear_nodes()
    for path in made:
        control_plane.call("DELETE", path)


def test_the_commands_drain_what_the_plan_says(
    cluster: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--cluster", f"--kubeconfig={cluster.kubeconfig(ADMIN)}", "-o", "json"]
    assert run(["plan", "--consolidate", *flags]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["emptied"], "one node is enough for all pods"

    for each in plan["emptied"]:
        program, *arguments = shlex.split(each["command"])
        assert program == "kubectl"
        before = on_node(cluster, each["node"])
        cluster.kubectl(*arguments, "--timeout=60s")
        gone = before - on_node(cluster, each["node"])
        assert sorted(f"default/{name}" for name in gone) == sorted(each["evictions"])
        assert on_node(cluster, each["node"]) <= {"agent-2"}
        assert cluster.get(f"/api/v1/nodes/{each['node']}")["spec"]["unschedulable"] is True
    held = {each["node"] for each in plan["held"]}
    assert held | {each["node"] for each in plan["emptied"]} <= {"n1", "n2", "n3"}


def on_node(plane: ControlPlane, node: str) -> set[str]:
    """The pods on a node that are not being deleted."""
    return {
        item["metadata"]["name"]
        for item in plane.get(PODS)["items"]
        if item["spec"].get("nodeName") == node and "deletionTimestamp" not in item["metadata"]
    }
