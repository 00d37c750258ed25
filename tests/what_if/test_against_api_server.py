"""Plans of a live cluster: a real API server, `podium run`, and the same change made there.

There are no controllers beside the API server. The first test makes changes that need none. The
second takes a snapshot and does what controllers do after a change as the plan says (see
`live_replay`); the nodes are up to `podium run`.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from cli.conftest import Podium
from control_plane.harness import ADMIN, PODS, ControlPlane, free_port
from waiting import until
from what_if.clusters import workload
from what_if.live_replay import SETTINGS, Gate, RecordedCluster, Replay
from what_if.random_clusters import Case, random_case

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

ZONE = "topology.kubernetes.io/zone"


def pods(rng: random.Random, prefix: str, count: int) -> list[dict[str, Any]]:
    return [_pod(rng, f"{prefix}{number}") for number in range(count)]


def _pod(rng: random.Random, name: str) -> dict[str, Any]:
    """A pod that wants some room, and perhaps to be away from its equals."""
    app = rng.choice(("red", "blue"))
    made = manifests.pod(name, f"{rng.randint(2, 12)}00m", labels={"app": app})
    draw = rng.random()
    selector = {"matchLabels": {"app": app}}
    if draw < 0.3:
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        made["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif draw < 0.5:
        made["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }
        ]
    return made


def listed(items: list[dict[str, Any]]) -> str:
    return json.dumps(manifests.listed(items))


def nodes_of(plane: ControlPlane) -> dict[str, str]:
    return {
        item["metadata"]["name"]: item["spec"].get("nodeName", "")
        for item in plane.get(PODS)["items"]
    }


def all_tried(plane: ControlPlane) -> bool:
    """Whether every pod has a node, or was told that there is none."""
    return all(
        item["spec"].get("nodeName") or item["status"].get("conditions")
        for item in plane.get(PODS)["items"]
    )


#: What controllers make pods for. A plan does that too, and here is no controller that did it.
WORKLOADS = (
    "apis/apps/v1 deployments",
    "apis/apps/v1 replicasets",
    "apis/apps/v1 statefulsets",
    "apis/apps/v1 daemonsets",
    "apis/batch/v1 jobs",
    "apis/batch/v1beta1 cronjobs",
    "apis/policy/v1beta1 poddisruptionbudgets",
    "api/v1 replicationcontrollers",
    "api/v1 pods",
)


@pytest.fixture(autouse=True)
def no_workloads(control_plane: ControlPlane) -> None:
    """Delete the workloads and pods that other tests left in the cluster."""
    for root, resource in (each.split() for each in WORKLOADS):
        for item in control_plane.get(f"/{root}/{resource}")["items"]:
            about = item["metadata"]
            path = f"/{root}/namespaces/{about['namespace']}/{resource}/{about['name']}"
            options = "propagationPolicy=Background&gracePeriodSeconds=0"
            control_plane.call("DELETE", f"{path}?{options}")


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_of_a_live_cluster_comes_true(
    control_plane: ControlPlane, podium: Podium, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  nothing secret about a cluster
    for number in range(4):
        control_plane.add_node(f"n{number}", {ZONE: "ab"[number % 2]}, cpu=str(rng.randint(2, 4)))
    kubeconfig = str(control_plane.kubeconfig(ADMIN))
    more = tmp_path / "more.json"
    more.write_text(listed(pods(rng, "new-", 4)))
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--listen=127.0.0.1:0")
    command = (sys.executable, "-m", "podium", "run", *flags, "--ties=first")
    try:
        with control_plane.program(f"run-{seed}", *command):
            control_plane.kubectl("apply", "-f", "-", text=listed(pods(rng, "old-", 5)))
            until("all pods tried", lambda: all_tried(control_plane))
            cordoned = f"n{rng.randrange(4)}"
            change = ("--cordon", cordoned, "--apply", str(more))
            plan = podium("plan", f"--kubeconfig={kubeconfig}", *change, "-o", "json")
            before = nodes_of(control_plane)
            control_plane.kubectl("cordon", cordoned)
            control_plane.kubectl("apply", "-f", str(more))
            until("all pods tried", lambda: all_tried(control_plane))
            after = nodes_of(control_plane)
    finally:
        control_plane.clear_nodes()

    assert plan.code in {0, 1}, plan.err
    found = {name: node for name, node in after.items() if name not in before}
    planned = {each["pod"].removeprefix("default/"): each["node"] for each in plan.json["created"]}
    assert planned == {name: node for name, node in found.items() if node}
    waiting = {each["pod"].removeprefix("default/") for each in plan.json["pending"]}
    assert waiting == {name for name, node in after.items() if not node}


@pytest.mark.parametrize("seed", range(3))
def test_pods_that_a_check_calls_pending_are_pending(
    control_plane: ControlPlane, podium: Podium, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  nothing secret about a cluster
    for number in range(3):
        control_plane.add_node(f"n{number}", {ZONE: "ab"[number % 2]}, cpu="2")
    kubeconfig = str(control_plane.kubeconfig(ADMIN))
    before, after = pods(rng, "old-", 4), pods(rng, "new-", 7)
    for folder, items in (("before", before), ("after", [*before, *after])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pods.json").write_text(listed(items))
    states = (str(tmp_path / "before"), str(tmp_path / "after"))
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--listen=127.0.0.1:0")
    command = (sys.executable, "-m", "podium", "run", *flags, "--ties=first")
    try:
        with control_plane.program(f"check-{seed}", *command):
            control_plane.kubectl("apply", "-f", states[0])
            until("all pods tried", lambda: all_tried(control_plane))
            waited = {name for name, node in nodes_of(control_plane).items() if not node}
            found = podium("check", *states, "--kubeconfig", kubeconfig, "-o", "json")
            control_plane.kubectl("apply", "-f", states[1])
            until("all pods tried", lambda: all_tried(control_plane))
            waiting = {name for name, node in nodes_of(control_plane).items() if not node}
    finally:
        control_plane.clear_nodes()

    assert waiting > waited
    assert found.code == 1, found.err
    named = {
        each["object"].removeprefix("Pod/default/")
        for each in found.json["findings"]
        if each["rule"] in {"pending", "impossible"}
    }
    assert named == waiting - waited


#: What is changed in the random clusters, in turns.
KINDS = ("drain", "lose", "scale", "apply", "rollout")
#: Besides the first ten: rollouts under a zone constraint, and one beside a pod that waits already.
#: They differ when the scheduler decides between two steps of one instant.
CLUSTERS = (*range(10, 20), 24, 34, 44, 54)
MORE_CLUSTERS = sorted(set(range(10, 60)).difference(CLUSTERS))


def case_of(seed: int, folder: Path) -> Case:
    """A random cluster at rest, and a change by which pods are created in it."""
    file = random_case(seed, folder).file
    items = json.loads(file.read_text())["items"]
    kind = KINDS[seed % len(KINDS)]
    if kind in {"drain", "lose"}:
        name = busiest_node(items)
        commands = {"drain": ("cordon", name), "lose": ("delete", "node", name)}
        return Case(file, (f"--{kind}", name), commands[kind])
    if kind == "apply":
        applied = folder / "apply.json"
        applied.write_text(json.dumps(workload("Deployment", "extra", 4, cpu="600m")))
        return Case(file, ("--apply", str(applied)), ("apply", "-f", str(applied)))
    app = max(
        (each for each in items if each["kind"] in {"Deployment", "StatefulSet"}),
        key=lambda each: (is_at_rest(each, items), each["spec"]["replicas"]),
    )
    target = f"{app['kind'].lower()}/{app['metadata']['name']}"
    if kind == "rollout":
        return Case(file, ("--rollout", target), ("rollout", "restart", target))
    replicas = app["spec"]["replicas"] + 4
    scale = ("scale", target, f"--replicas={replicas}")
    return Case(file, ("--scale", f"{target}={replicas}"), scale)


def is_at_rest(workload: dict[str, Any], items: list[dict[str, Any]]) -> bool:
    """Whether a workload goes on: a stateful set waits until each of its pods has a node."""
    return workload["kind"] != "StatefulSet" or all(
        each["spec"].get("nodeName")
        for each in items
        if each["kind"] == "Pod"
        and each["metadata"]["ownerReferences"][0]["uid"] == workload["metadata"]["uid"]
    )


def busiest_node(items: list[dict[str, Any]]) -> str:
    """The node with the most pods that are not of a daemon set."""
    found = Counter(
        str(pod["spec"]["nodeName"])
        for pod in items
        if pod["kind"] == "Pod"
        and pod["spec"].get("nodeName")
        and pod["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet"
    )
    return max(sorted(found), key=lambda name: found[name])


def expected_nodes(plan: dict[str, Any], before: dict[str, str]) -> dict[str, str]:
    """The node of every pod after the change, by the answer of the plan."""
    gone = {each["object"] for each in plan["timeline"] if each["what"] == "gone"}
    found = {name: node for name, node in before.items() if name not in gone}
    found |= {each["newPod"]: each["toNode"] for each in plan["moved"]}
    found |= {each["pod"]: each["node"] for each in plan["created"]}
    return found | {each["pod"]: "" for each in plan["pending"]}


@pytest.fixture
def gate() -> Iterator[Gate]:
    """An extender by which the scheduler can be held."""
    gate = Gate()
    yield gate
    gate.stop()


@pytest.mark.parametrize(
    "seed",
    [*CLUSTERS, *(pytest.param(seed, marks=pytest.mark.soak) for seed in MORE_CLUSTERS)],
)
def test_podium_run_places_the_pods_of_a_plan_on_its_nodes(
    control_plane: ControlPlane,
    podium: Podium,
    tmp_path: Path,
    seed: int,
    *,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = case_of(seed, tmp_path)
    monkeypatch.setattr("podium.what_if.plan.cluster_copy.SimulatedCluster", RecordedCluster)
    shared, own = tmp_path / "shared.json", tmp_path / "own.json"
    shared.write_text(json.dumps(SETTINGS))
    own.write_text(json.dumps(gate.settings))
    plan = podium("plan", str(case.file), *case.flag, "--config", str(shared), "-o", "json")
    assert plan.code in {0, 1}, plan.err
    change, *events = plan.json["timeline"]
    assert change["what"] == "change"
    assert "created" in {each["what"] for each in events}
    steps = RecordedCluster.last.steps_since(events[0])
    kubeconfig, port = control_plane.kubeconfig(ADMIN), free_port()
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--listen=127.0.0.1:{port}")
    command = (sys.executable, "-m", "podium", "run", *flags, f"--config={own}", "--ties=first")
    replay = Replay(control_plane, gate, f"http://127.0.0.1:{port}/metrics")
    try:
        replay.load(json.loads(case.file.read_text())["items"])
        with control_plane.program(f"replay-{seed}", *command):
            replay.wait_until_idle()
            before = replay.nodes()
            replay.make(case.kubectl, steps)
            replay.wait_until_idle()
            after = replay.nodes()
    finally:
        control_plane.clear_nodes()

    assert after == expected_nodes(plan.json, before)
