"""`podium fix`: sentences, commands and patches, and what is refused."""

from __future__ import annotations

import json
import shlex

from cli.conftest import Files, Podium
from manifests import deployment, node, pod

GPU = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def test_the_cheapest_fix_comes_first_with_its_command(podium: Podium, write: Files) -> None:
    file = write([node("n1", cpu="2", unschedulable=True), node("n2", cpu="1"), pod("w", "1500m")])

    result = podium("fix", "w", file)

    assert result.code == 0
    assert result.lines[0] == "default/w fits nowhere now"
    assert result.lines[1].startswith("  wants 1500m of CPU; 1 of 2 nodes has 1;")
    assert result.lines[4:7] == [
        "1. Uncordon the node n1.",
        "   cost 2, then it goes to n1",
        "   kubectl uncordon n1",
    ]
    assert "2. Lower the cpu request of container main from 1500m to 1." in result.lines


def test_a_fix_as_data_has_a_patch_and_a_command(podium: Podium, write: Files) -> None:
    file = write([node("n1", taints=GPU), pod("w")])

    found = podium("fix", "default/w", file, "-o", "json").json

    assert (found["apiVersion"], found["kind"]) == ("podium/v1", "Fixes")
    edit = found["fixes"][0]["edits"][0]
    assert edit["action"] == "toleration"
    assert edit["object"] == {"kind": "Pod", "names": ["default/w"]}
    words = shlex.split(edit["command"])
    assert words[:6] == ["kubectl", "-n", "default", "patch", "pod", "w"]
    assert json.loads(words[-1]) == edit["patch"]


def test_the_template_of_a_workload_is_patched(podium: Podium, write: Files) -> None:
    file = write([node("n1", cpu="1"), deployment("web", 1, cpu="2")])
    name = podium("schedule", file, "-o", "name").out.split()[0]

    found = podium("fix", name, file, "-o", "json").json

    words = shlex.split(found["fixes"][0]["edits"][0]["command"])
    assert words[:6] == ["kubectl", "-n", "default", "patch", "deployment", "web"]
    path = "/spec/template/spec/containers/0/resources/requests/cpu"
    assert json.loads(words[-1]) == [{"op": "replace", "path": path, "value": "1"}]


def test_pairs_are_tried_when_asked_for(podium: Podium, write: Files) -> None:
    cordoned = node("n1", cpu="8", unschedulable=True)
    file = write([cordoned, node("n2", cpu="4", taints=GPU), pod("w", "5")])

    single = podium("fix", "w", file, "-o", "json").json
    both = podium("fix", "w", file, "--pairs", "-o", "json").json

    assert {len(each["edits"]) for each in single["fixes"]} == {1}
    assert {len(each["edits"]) for each in both["fixes"]} == {1, 2}


def test_nothing_helps_is_exit_code_1(podium: Podium, write: Files) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]

    result = podium("fix", "w", write([node("n1"), pod("w", volumes=volumes)]), "--exit-code")

    assert result.code == 1
    assert result.lines[-2:] == [
        "no edit of the kinds that are known, and no two of them, would help",
        "  the claim default/gone does not exist: create it, or remove its volume from the pod",
    ]


def test_a_pod_that_fits_is_exit_code_0(podium: Podium, write: Files) -> None:
    result = podium("fix", "w", write([node("n1"), pod("w")]))

    assert (result.code, result.out) == (
        0,
        "default/w fits on n1 now; nothing needs to change\n",
    )


def test_an_unknown_pod_is_one_sentence(podium: Podium, write: Files) -> None:
    result = podium("fix", "v", write([node("n1"), pod("w")]))

    assert result.code == 2
    assert result.err == "podium: there is no pod v; there are w\n"
