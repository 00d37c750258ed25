"""Plans of a live cluster, carried out: a real API server, kubectl, the controllers of the lab.

`podium run` schedules. The same pods are evicted, moved and left without a node as the plan says.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from control_plane.harness import ADMIN, PODS, ControlPlane
from control_plane.lab_controllers import LabControllers
from manifests import budget
from podium.cli.main import run
from what_if.clusters import Item, workload

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

ZONE = "topology.kubernetes.io/zone"
DRAIN = ("--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=240s")


def workloads() -> list[Item]:
    """One fits in zone a only, and only on a node of its own; one has a budget, one has names."""
    scratch = [{"name": "scratch", "emptyDir": {}}]
    allowed = budget("web", "web", maxUnavailable=1)
    return [
        workload("Deployment", "big", 1, "3300m", nodeSelector={ZONE: "a"}),
        workload("Deployment", "web", 5, "700m", volumes=scratch),
        workload("StatefulSet", "db", 3, "400m"),
        workload("DaemonSet", "agent", None, "100m"),
        {**allowed, "apiVersion": "policy/v1beta1"},
    ]


class LivePod(NamedTuple):
    """A pod of the API server: whose it is, and where."""

    name: str
    workload: str
    node: str


def live_pods(plane: ControlPlane) -> dict[str, LivePod]:
    """By uid, without those of daemon sets."""
    path = "/apis/apps/v1/namespaces/default/replicasets"
    above = {
        each["metadata"]["uid"]: each["metadata"]["ownerReferences"][0]
        for each in plane.get(path)["items"]
    }
    found = {}
    for each in plane.get(PODS)["items"]:
        owner = each["metadata"]["ownerReferences"][0]
        owner = above.get(owner["uid"], owner)
        if owner["kind"] != "DaemonSet":
            name = f"{owner['kind']}/default/{owner['name']}"
            about, node = each["metadata"], each["spec"].get("nodeName", "")
            found[about["uid"]] = LivePod(f"default/{about['name']}", name, node)
    return found


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[tuple[ControlPlane, LabControllers]]:
    """Four nodes in two zones, with all workloads at rest, and `podium run` beside it."""
    control_plane.clear_nodes()
    for number in range(4):
        control_plane.add_node(f"n{number}", {ZONE: "aabb"[number]}, "4")
    kubeconfig = control_plane.kubeconfig(ADMIN)
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--listen=127.0.0.1:0")
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": workloads()})
    controllers = LabControllers(control_plane)
    with control_plane.program("carried-out", sys.executable, "-m", "podium", "run", *flags):
        control_plane.kubectl("apply", "-f", "-", text=text)
        controllers.rest()
        yield control_plane, controllers
    control_plane.kubectl("delete", "-f", "-", "--cascade=background", "--wait=false", text=text)
    for kind in ("replicasets", "controllerrevisions"):
        control_plane.kubectl("delete", kind, "--all", "--cascade=background", "--wait=false")
    control_plane.clear_nodes()


def planned(plane: ControlPlane, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    """The plan of the live cluster."""
    assert run(["plan", f"--kubeconfig={plane.kubeconfig(ADMIN)}", *flags, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("change", ["drain", "lose"])
def test_what_a_plan_says_comes_true(
    cluster: tuple[ControlPlane, LabControllers], capsys: pytest.CaptureFixture[str], change: str
) -> None:
    plane, controllers = cluster
    before = live_pods(plane)
    drained = next(pod.node for pod in before.values() if pod.workload.endswith("/big"))
    target, command = {
        "drain": (drained, ("drain", drained, *DRAIN)),
        "lose": (f"{ZONE}=a", ("delete", "nodes", "-l", f"{ZONE}=a")),
    }[change]
    plan = planned(plane, capsys, f"--{change}", target)

    controllers.kubectl(*command)
    after = live_pods(plane)

    gone = {pod.name for uid, pod in before.items() if uid not in after}
    new = [pod for uid, pod in after.items() if uid not in before]
    told = {each["object"] for each in plan["timeline"] if each["what"] == "gone"}
    daemons = {name for name in told if name.startswith("default/agent-")}
    assert gone
    assert gone == told - daemons
    moved, left = (Counter(p.workload for p in new if bool(p.node) is has) for has in (True, False))
    assert moved == Counter(each["workload"] for each in plan["moved"])
    assert left == Counter(each["workload"] for each in plan["pending"])
    assert left == {"Deployment/default/big": 1}


def test_the_commands_of_a_consolidation_empty_the_nodes(
    cluster: tuple[ControlPlane, LabControllers], capsys: pytest.CaptureFixture[str]
) -> None:
    plane, controllers = cluster
    before = live_pods(plane)
    plan = planned(plane, capsys, "--consolidate")

    for command in plan["commands"]:
        program, verb, *arguments = shlex.split(command)
        assert program == "kubectl"
        controllers.kubectl(verb, *arguments, *(["--timeout=240s"] if verb == "drain" else []))
    after = live_pods(plane)

    emptied = {each["node"] for each in plan["emptied"]}
    assert emptied
    told = {name for each in plan["emptied"] for name in each["evictions"]}
    assert {pod.name for uid, pod in before.items() if uid not in after} == told
    assert {pod.node for pod in after.values()}.isdisjoint({*emptied, ""})
    for name in emptied:
        assert plane.get(f"/api/v1/nodes/{name}")["spec"]["unschedulable"] is True
