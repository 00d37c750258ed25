"""The past of a lab that nobody asked to keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manifests
from host.conftest import Lab
from manifests import pod
from podium.cli.main import run
from podium.host.memory_history import memory_folder
from waiting import until


def test_the_folder_is_gone_at_the_end(tmp_path: Path) -> None:
    with memory_folder(tmp_path) as folder:
        assert Path(folder).is_dir()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_killed_programs_are_deleted_and_those_in_use_are_not(tmp_path: Path) -> None:
    abandoned = tmp_path / "podium-lab-dead"
    abandoned.mkdir()
    (abandoned / "lock").touch()

    with memory_folder(tmp_path) as first, memory_folder(tmp_path) as second:
        assert {each.name for each in tmp_path.iterdir()} == {Path(first).name, Path(second).name}


@pytest.mark.slow
def test_a_decision_of_a_lab_is_shown_as_it_was_made(programs: Callable[..., Any]) -> None:
    lab = programs(Lab, "--nodes", "120")
    lab.create_pods("first")
    until("a node", lab.all_bound)
    [pod] = [each for each in lab.pods() if each["metadata"]["name"] == "first"]
    node = pod["spec"]["nodeName"]
    # The cluster is another one now: the decision could not be worked out again.
    lab.request(f"/api/v1/nodes/{node}", method="DELETE")
    lab.create_pods(*(f"other-{number}" for number in range(5)))

    found = json.loads(lab.request("/podium/v1/decisions/default/first"))

    assert found["source"] == "recorded"
    assert found["node"] == node
    assert len(found["totals"]) == len(found["feasible"]) == found["nodes"]["feasible"]
    assert found["nodes"]["total"] == 120
    assert found["trace"]["scores"], "the arithmetic of the player"


def created(lab: Any, name: str, cpu: str, priority_class: str = "") -> None:
    made = pod(name, cpu, priorityClassName=priority_class, terminationGracePeriodSeconds=1)
    lab.request("/api/v1/namespaces/default/pods", made, "POST")


@pytest.mark.slow
def test_a_preemption_is_told_with_its_victims(
    programs: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = programs(Lab, "--nodes", "1")
    vip = manifests.priority_class("vip", 1000)
    lab.request("/apis/scheduling.k8s.io/v1/priorityclasses", vip, "POST")
    [node] = json.loads(lab.request("/api/v1/nodes"))["items"]
    most = str(node["status"]["allocatable"]["cpu"])
    created(lab, "low", most)
    until("a node", lab.all_bound)
    created(lab, "high", most, "vip")
    until("the place of the evicted pod", lambda: lab.all_bound() and len(lab.pods()) == 1)

    told = json.loads(lab.request("/podium/v1/decisions/default/high"))["story"]

    [victim] = told[0]["victims"]
    assert (victim["pod"], victim["priority"]) == ("default/low", 0)
    assert victim["why"].startswith("with it back, cpu: wants")
    assert victim["endedAt"] >= told[0]["from"]
    assert told[-1]["text"] == f"placed on {node['metadata']['name']}, which was promised to it"
    assert run(["why", "high", "--kubeconfig", str(lab.kubeconfig)]) == 0
    assert "default/low (priority 0) is evicted" in capsys.readouterr().out
