"""`podium history`: a trace is written and swept like its files; copies under other names."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import node, pod
from cli.conftest import Podium
from daemon.fakes import PROFILES
from daemon.hindsight.driver import Driver
from sweeps.small_experiment import MEASURED, write_experiment


def test_an_imported_trace_is_swept_like_its_files(podium: Podium, tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    flags = ("--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv"))
    result = podium("history", "import", "csv", str(tmp_path / "h"), *flags)

    assert (result.code, result.err) == (0, "")
    assert result.out == f"{tmp_path / 'h'}: 2 nodes, 5 pods, 7 changes in 40 s\n"

    from podium.sweeps.cells import cells_of  # noqa: PLC0415
    from podium.sweeps.experiment import read_experiment  # noqa: PLC0415
    from podium.sweeps.runs import run_cell  # noqa: PLC0415

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
    profile, behaviour = PROFILES["v1.36"]
    driver = Driver(folder, profile, behaviour)
    driver.put(node("acme-1", cpu=1))
    driver.put(node("acme-2", cpu=4))
    driver.put(pod("web", namespace="acme", requests={"cpu": 2}))
    driver.turn()
    driver.recorder.close()


def test_a_copy_under_other_names_is_replayed(podium: Podium, tmp_path: Path) -> None:
    recorded_history(tmp_path / "h")
    copy = str(tmp_path / "copy")

    result = podium("history", "anonymize", str(tmp_path / "h"), copy)

    assert (result.code, result.err) == (0, "")
    told = f"{copy}: 1 segment, 3 changes, 1 decision, 1 of which follow again\n"
    assert result.out == told
    assert podium("replay", copy).out == "1 decision made again, 1 equal\n"
    explained = podium("replay", copy, "--pod", "ns-000000/pod-000000", "-o", "json")
    assert explained.json["node"] == "node-000001"
    again = podium("history", "anonymize", str(tmp_path / "h"), copy)
    assert again.code == 2
    assert again.err == f"podium: {copy}: is there already; name a folder that is not\n"


def test_other_rules_without_a_profile_of_the_scheduler_are_noted(
    podium: Podium, tmp_path: Path
) -> None:
    recorded_history(tmp_path / "history")
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: other\n"
    )

    found = podium("replay", str(tmp_path / "history"), "--config", str(config))

    assert found.err == (
        "podium: note: no profile of these rules is for the scheduler default-scheduler: "
        "its pods get no node\n"
    )
    same = podium("replay", str(tmp_path / "history"), "--profile", "v1.36")
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
    result = podium("replay", str(tmp_path / "h"), "--at", time)

    assert result.code == 2
    hint = "2026-01-31T12:00:00Z would be one, or seconds since 1970"
    assert result.err == f"podium: --at: {time!r} is no time; {hint}\n"
