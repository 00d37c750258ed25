"""`podium history`: a trace is written and swept like its files; copies under other names."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from builders import node, pod
from cli.conftest import Podium
from past.judge.driver import Driver
from podium.library.reading import read
from podium.objects.kinds.pod import PodCondition
from research.sweeps.small_experiment import MEASURED, write_experiment
from scheduler.fakes import PROFILES


def test_an_imported_trace_is_swept_like_its_files(podium: Podium, tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    flags = ("--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv"))
    result = podium("history", "import", "csv", str(tmp_path / "h"), *flags)

    assert (result.code, result.err) == (0, "")
    assert result.out == f"{tmp_path / 'h'}: 2 nodes, 5 pods, 7 changes in 40 s\n"

    from podium_research.sweeps.cells import cells_of  # noqa: PLC0415
    from podium_research.sweeps.experiment import read_experiment  # noqa: PLC0415
    from podium_research.sweeps.runs import run_cell  # noqa: PLC0415

    experiment = tmp_path / "experiment.yaml"
    for more in (MEASURED, "inTime: true"):
        text = Path(write_experiment(tmp_path, more)).read_text()
        before = run_cell(cells_of(read_experiment(path), tmp_path)[0])
        experiment.write_text(text.replace("csv: {nodes: nodes.csv, pods: pods.csv}", "history: h"))
        after = run_cell(cells_of(read_experiment(path), tmp_path)[0])
        assert before.error == after.error == ""
        assert before.figures == after.figures


def test_output_as_json_and_a_folder_that_is_taken(podium: Podium, tmp_path: Path) -> None:
    write_experiment(tmp_path)
    flags = ("--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv"))
    target = str(tmp_path / "h")
    result = podium("history", "import", "csv", target, *flags, "-o", "json")

    assert result.json == {
        "history": target,
        "nodes": 2,
        "pods": 5,
        "changes": 7,
        "seconds": 40.0,
    }
    again = podium("history", "import", "csv", target, *flags)
    assert again.code == 2
    assert again.err == f"podium: {target}: is there already; name a folder that is not\n"


def recorded_history(folder: Path) -> None:
    """Two nodes, and a pod that is placed on one of them."""
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(folder, profile, behaviour)
    driver.put(node("acme-1", cpu=1))
    driver.put(node("acme-2", cpu=4))
    driver.put(pod("web", namespace="acme", requests={"cpu": 2}))
    driver.turn()
    driver.recorder.close()


def test_judge_lists_what_is_as_good_if_told(podium: Podium, tmp_path: Path) -> None:
    folder = tmp_path / "h"
    driver = Driver(folder, *PROFILES["v1.37"])
    for name in ("a", "b"):
        driver.put(node(name))
    driver.put(pod("p", uid="p"))
    driver.put(pod("p", uid="p", node="b"))
    driver.recorder.close()
    command = ("history", "judge", str(folder), "--ties", "first")

    plain, listed = podium(*command), podium(*command, "--all")

    assert (plain.code, listed.code) == (0, 0)
    assert "1  as good: another node with the same total" in plain.out
    assert "actually on" not in plain.out
    assert "  default/p: a, actually on b\n" in listed.out
    assert podium(*command, "-o", "json").json["differences"] == []
    [found] = podium(*command, "-o", "json", "--all").json["differences"]
    assert found["pod"] == "default/p"


def test_a_copy_under_other_names_is_replayed(podium: Podium, tmp_path: Path) -> None:
    recorded_history(tmp_path / "h")
    copy = str(tmp_path / "copy")

    result = podium("history", "anonymize", str(tmp_path / "h"), copy)

    assert (result.code, result.err) == (0, "")
    told = f"{copy}: 1 segment, 3 changes, 1 decision, 1 of which follow again\n"
    assert result.out == told
    assert podium("history", "replay", copy).out == "1 decision made again, 1 equal\n"
    explained = podium("history", "replay", copy, "--pod", "ns-000000/pod-000000", "-o", "json")
    assert explained.json["node"] == "node-000001"
    again = podium("history", "anonymize", str(tmp_path / "h"), copy)
    assert again.code == 2
    assert again.err == f"podium: {copy}: is there already; name a folder that is not\n"


def test_a_history_stands_for_the_cluster_at_its_end(podium: Podium, tmp_path: Path) -> None:
    recorded_history(tmp_path / "h")
    wants = tmp_path / "big.yaml"
    wants.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: big}, spec: {containers: "
        "[{name: c, image: i, resources: {requests: {cpu: 3}}}]}}"
    )

    found = podium("explain", "big", str(wants), str(tmp_path / "h"), "-o", "json")

    # acme-2 has 4 CPUs, and 2 of them are those of the pod that was placed there.
    assert found.code == 0
    assert found.json["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    segment = next((tmp_path / "h").iterdir())
    same = podium("explain", "big", str(wants), str(segment), "-o", "json")
    assert same.json == found.json


def test_a_change_is_checked_against_the_end_of_a_history(podium: Podium, tmp_path: Path) -> None:
    cluster, wants = tmp_path / "cluster.yaml", tmp_path / "big.yaml"
    pods = {
        name: f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, uid: {name}}}, spec: "
        f"{{containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
        for name, cpu in (("web", 2), ("big", 3))
    }
    cluster.write_text(pods["web"])
    wants.write_text(pods["big"])
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(tmp_path / "h", profile, behaviour)
    driver.put(node("n1", cpu=4))
    [web] = read(cluster).pods
    driver.put(web)
    driver.turn()
    waits = PodCondition(type="PodScheduled", status="True")
    driver.put(replace(web, status=replace(web.status, conditions=[waits])))  # not bound yet
    driver.recorder.close()

    found = podium("check", str(wants), "-f", str(tmp_path / "h"), "-o", "json")

    assert found.code == 1, found.err
    names = [(each["rule"], each["object"]) for each in found.json["findings"]]
    assert names == [("pending", "Pod/default/big")]
    # The pod that is not bound yet counts on its node.
    alone = podium("explain", "big", str(wants), str(tmp_path / "h"), "-o", "json")
    assert alone.json["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_damaged_history_is_no_cluster(podium: Podium, tmp_path: Path) -> None:
    recorded_history(tmp_path / "h")
    segment = next((tmp_path / "h").iterdir())
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    found = podium("schedule", str(tmp_path / "h"))

    assert found.code == 2
    assert "its end is not known: 000001.history is damaged after" in found.err


def test_other_rules_without_a_profile_of_the_scheduler_are_noted(
    podium: Podium, tmp_path: Path
) -> None:
    recorded_history(tmp_path / "history")
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: other\n"
    )

    found = podium("history", "replay", str(tmp_path / "history"), "--config", str(config))

    assert found.err == (
        "podium: note: no profile of these rules is for the scheduler default-scheduler: "
        "its pods get no node\n"
    )
    same = podium("history", "replay", str(tmp_path / "history"), "--profile", "v1.37")
    assert same.err == ""


def test_no_history_to_copy_is_one_sentence(podium: Podium, tmp_path: Path) -> None:
    result = podium("history", "anonymize", str(tmp_path / "nowhere"), str(tmp_path / "copy"))

    assert result.code == 2
    where = tmp_path / "nowhere"
    assert result.err == f"podium: {where}: cannot be read: no such file or directory\n"
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("form", ["openb", "csv", "simkube"])
def test_a_missing_file_is_one_sentence(podium: Podium, tmp_path: Path, form: str) -> None:
    flags = ("--nodes", "nowhere.csv", "--pods", "nowhere.csv")
    result = podium("history", "import", form, str(tmp_path / "h"), *flags)

    assert result.code == 2
    assert result.err == "podium: nowhere.csv: cannot be read: no such file or directory\n"
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize("time", ["yesterday", "nan", "inf"])
def test_what_is_no_time_is_one_sentence(podium: Podium, tmp_path: Path, time: str) -> None:
    recorded_history(tmp_path / "h")
    result = podium("history", "replay", str(tmp_path / "h"), "--at", time)

    assert result.code == 2
    hint = "2026-01-31T12:00:00Z would be one, or seconds since 1970"
    assert result.err == f"podium: --at: {time!r} is no time; {hint}\n"
