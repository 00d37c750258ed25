"""`podium run` on a real API server: where pods go, and what the cluster sees of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control_plane.bulk import create_many, nodes, pods, revision
from control_plane.checker import account, assert_sound
from control_plane.harness import PODS, ROOT, ControlPlane
from scheduler.api_server.conftest import Podium
from waiting import until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

GENERATIONS = ("v1.13", "v1.37")
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
NO_HELP = "0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def status_of(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.get(f"{PODS}/{name}")["status"]
    return found


def condition_of(plane: ControlPlane, name: str, kind: str = "PodScheduled") -> dict[str, Any]:
    listed = status_of(plane, name).get("conditions", ())
    return next((each for each in listed if each["type"] == kind), {})


@pytest.mark.parametrize("profile", GENERATIONS)
def test_pods_are_bound_and_those_of_others_are_left_alone(
    plane: ControlPlane, podium: Podium, profile: str
) -> None:
    since = revision(plane)
    for number in range(3):
        plane.add_node(f"n{number}", {}, cpu="1")
    plane.add_pod("theirs", "somebody-else", cpu="1")
    plane.add_pod("their-load", "somebody-else", cpu="900m", nodeName="n0")
    for number in range(6):
        plane.add_pod(f"p{number}", "podium", cpu="300m")

    with podium("--profile", profile):
        until("all are bound", lambda: all(plane.node_of(f"p{i}") for i in range(6)))
        until("it is told", lambda: plane.events_of("p0"))
        told = plane.events_of("p0")

    found = assert_sound(plane, since)
    assert {found.node_of(f"p{i}") for i in range(6)} == {"n1", "n2"}
    assert plane.node_of("theirs") == ""
    assert not condition_of(plane, "theirs")
    assert plane.events_of("theirs") == []
    assert told == [f"Scheduled: Successfully assigned default/p0 to {found.node_of('p0')}"]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("v1.13", NO_ROOM),
        ("v1.36", f"{NO_ROOM} no new claims to deallocate, preemption: {NO_HELP}"),
        ("v1.37", f"{NO_ROOM} preemption: {NO_HELP}"),
    ],
)
def test_a_pod_that_fits_nowhere_says_why_and_is_placed_when_it_can_be(
    plane: ControlPlane, podium: Podium, profile: str, message: str
) -> None:
    plane.add_node("small", {}, cpu="1")
    plane.add_pod("big", "podium", cpu="2")

    with podium("--profile", profile):
        until("it says so", lambda: condition_of(plane, "big"))
        condition = condition_of(plane, "big")
        until("an event says so", lambda: plane.events_of("big"))
        events = plane.events_of("big")
        plane.add_node("large", {}, cpu="4")
        until("it is placed", lambda: plane.node_of("big"))

    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == message
    assert bool(condition["lastProbeTime"]) == (profile == "v1.13")
    assert events == [f"FailedScheduling: {message}"]
    assert plane.node_of("big") == "large"
    assert condition_of(plane, "big")["status"] == "True"


@pytest.mark.parametrize("profile", GENERATIONS)
def test_a_pod_of_higher_priority_takes_the_place_of_another(
    plane: ControlPlane, podium: Podium, profile: str
) -> None:
    plane.add_node("n", {}, cpu="1")
    plane.add_pod("low", "podium", cpu="800m", priority=1, terminationGracePeriodSeconds=77)
    with podium("--profile", profile):
        until("low is placed", lambda: plane.node_of("low"))
        plane.add_pod("high", "podium", cpu="800m", priority=9)
        until("low has to go", lambda: "deletionTimestamp" in metadata(plane, "low"))
        until("high is promised", lambda: status_of(plane, "high").get("nominatedNodeName"))
        leaving, marked = metadata(plane, "low"), condition_of(plane, "low", "DisruptionTarget")
        until("it is told", lambda: len(plane.events_of("low")) > 1)
        told, uid = plane.events_of("low")[-1], metadata(plane, "high")["uid"]
        assert plane.node_of("high") == ""
        plane.delete_pod("low")
        until("high is placed", lambda: plane.node_of("high"))

    assert leaving["deletionGracePeriodSeconds"] == 77
    if profile == "v1.13":
        assert told == "Preempted: by default/high on node n"
        assert not marked
    else:
        assert told == f"Preempted: Preempted by pod {uid} on node n"
        assert (marked["status"], marked["reason"]) == ("True", "PreemptionByScheduler")
        assert marked["message"] == "podium: preempting to accommodate a higher priority pod"


def metadata(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.get(f"{PODS}/{name}")["metadata"]
    return found


#: Kinds of pods whose places depend on each other.
def mixed(number: int) -> dict[str, Any]:
    made = next(pods(1, cpu=f"{100 + number % 7 * 50}m", prefix="mixed"))
    made["metadata"] = {"name": f"mixed-{number:04d}", "labels": {"app": f"a{number % 5}"}}
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": f"a{number % 5}"}},
    }
    if number % 5 == 0:
        anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        made["spec"]["affinity"] = {"podAntiAffinity": anti}
    if number % 5 == 1:
        near = [{"weight": 10, "podAffinityTerm": term}]
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": near}
        made["spec"]["affinity"] = {"podAffinity": preferred}
    made["spec"]["priority"] = number % 3
    return made


def compare_with_files(
    plane: ControlPlane, podium: Podium, folder: Path, profile: str, count: tuple[int, int]
) -> int:
    """Pods are placed as `podium schedule` places them, or left without a place; how many are."""
    since = revision(plane)
    create_many(plane, "/api/v1/nodes", nodes(count[0], cpu="8"), at_once=1)
    # One after the other: files are taken in the order of creation.
    create_many(plane, PODS, (mixed(number) for number in range(count[1])), at_once=1)
    items = plane.get("/api/v1/nodes")["items"] + plane.get(PODS)["items"]
    for item in items:
        item["kind"] = "Node" if "nodeInfo" in item["status"] else "Pod"
        item["apiVersion"] = "v1"
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "utf-8")
    command = [sys.executable, "-m", "podium", "schedule", "-o", "json", str(path)]
    command += ["--profile", profile, "--scheduler-name", "podium"]
    if profile != "v1.13":  # as `podium run` does by default
        command += ["--ties", "kube-scheduler"]
    told = subprocess.run(
        command, capture_output=True, check=False, env={"PYTHONPATH": str(ROOT / "src")}
    )
    wanted = {each["pod"]: each["node"] or "" for each in json.loads(told.stdout)}

    with podium("--profile", profile):
        until(
            "each is bound, or told that it does not fit",
            lambda: all(map(is_settled, plane.get(PODS)["items"])),
            seconds=120,
            pause=0.5,
        )

    placed = assert_each_bound_once(plane, since)
    found = {
        f"default/{pod['metadata']['name']}": pod["spec"].get("nodeName", "")
        for pod in plane.get(PODS)["items"]
    }
    assert found == wanted
    return placed


def is_settled(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return "nodeName" in pod["spec"] or any(each["status"] == "False" for each in conditions)


@pytest.mark.parametrize("profile", GENERATIONS)
def test_the_same_places_as_from_files(
    plane: ControlPlane, podium: Podium, tmp_path: Path, profile: str
) -> None:
    assert compare_with_files(plane, podium, tmp_path, profile, (100, 400)) == 400


@pytest.mark.soak
@pytest.mark.parametrize("profile", GENERATIONS)
def test_the_same_places_as_from_files_in_full_size(
    plane: ControlPlane,
    podium: Podium,
    tmp_path: Path,
    profile: str,
    record_property: Callable[[str, object], None],
) -> None:
    same = compare_with_files(plane, podium, tmp_path, profile, (1000, 5000))

    # Pods that like each other fill nodes, and some of those that want to be alone come too late.
    assert same > 4900
    record_property("same places", same)


def test_a_thousand_nodes_and_five_thousand_pods(plane: ControlPlane, podium: Podium) -> None:
    since = revision(plane)
    create_many(plane, "/api/v1/nodes", nodes(1000))
    create_many(plane, PODS, pods(5000))

    before = bound(plane)
    with podium() as program:
        program.wait_for("all are bound", lambda: bound(plane) - before == 5000, 120)

    assert assert_each_bound_once(plane, since) == 5000


def assert_each_bound_once(plane: ControlPlane, since: int) -> int:
    """Nobody is bound twice, and no node is ever too full; how many are bound."""
    told = account(plane, since)
    assert {len(nodes) for nodes in told.bindings.values()} == {1}
    assert told.excesses == []
    return len(told.bindings)


def bound(plane: ControlPlane) -> int:
    """How many bindings the API server has taken, by its own count."""
    text: str = plane.get("/metrics")
    lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    taken = [line for line in lines if 'subresource="binding"' in line and 'code="201"' in line]
    return sum(int(float(line.rpartition(" ")[2])) for line in taken)
