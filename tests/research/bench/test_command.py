"""`podium bench`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podium.cli.main import run

SAMPLE = str(Path(__file__).parent / "sample" / "performance-config.yaml")
SMALL = ("--nodes", "5", "--existing", "2", "--pods", "4")


def podium(*arguments: str) -> int:
    return run(["bench", *arguments])


def test_a_table_begins_with_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    code = podium("SchedulingBasic", *SMALL, "--provider", "DefaultProvider")

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0] == "profile v1.13 DefaultProvider, all nodes scored, fast path"
    assert lines[3].split()[:5] == ["SchedulingBasic/5Nodes", "5", "2", "4", "4"]


def test_the_plain_path_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    podium("SchedulingBasic", *SMALL, "--plain", "--percentage-of-nodes-to-score", "70")

    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("70% of the nodes scored, plain path")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_figures_as_data(capsys: pytest.CaptureFixture[str], output: str) -> None:
    code = podium("SchedulingBasic", *SMALL, "-o", output)

    text = capsys.readouterr().out
    data = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert code == 0
    assert data["percentageOfNodesToScore"] == 100
    assert [each["placed"] for each in data["results"]] == [4]


def test_a_workload_that_the_profile_has_no_rule_for_is_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = podium("TopologySpreading", *SMALL, "--provider", "DefaultProvider")

    assert code == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "TopologySpreading/5Nodes: skipped, v1.13 DefaultProvider has no PodTopologySpread"
    )


def test_pods_without_a_place_are_told_by_the_exit_code() -> None:
    assert (
        podium("SchedulingPodAntiAffinity", "--nodes", "3", "--existing", "1", "--pods", "4") == 1
    )


def test_the_list_names_cases_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    code = podium("--list")

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split()[:2] == ["WORKLOAD", "SIZES"]
    assert any(line.startswith("Preemption ") and "500Nodes 5000Nodes" in line for line in lines)


def test_the_list_is_data_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert podium("--list", "Preemption/*", "-o", "json") == 0

    found = json.loads(capsys.readouterr().out)
    assert [each["size"] for each in found] == ["500Nodes", "5000Nodes"]
    assert found[0].keys() == {"case", "size", "description", "needs"}


def test_workloads_of_a_file_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = podium("-f", SAMPLE, "Everything/Small")

    told = capsys.readouterr()
    assert code == 0
    assert told.out.splitlines()[3].startswith("Everything/Small")
    assert "schedulerConfigPath is not read" in told.err


def test_an_operation_nobody_knows_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code = podium("-f", SAMPLE, "Strange")

    told = capsys.readouterr()
    assert code == 2
    assert told.out == ""
    assert told.err.startswith(
        "podium: workload Strange/Small: the operation 'paintNodes' is not known; known: "
    )
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_chart_is_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"chart.{suffix}"

    code = podium("SchedulingBasic", *SMALL, "--chart", str(path))

    assert code == 0
    assert "SchedulingBasic/5Nodes" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("chart", "sentence"),
    [
        ("chart.png", "chart.png: is no chart; name a file that ends in .svg or .html"),
        ("none/chart.svg", "none/chart.svg: cannot be written: there is no such folder"),
    ],
)
def test_a_chart_that_cannot_be_written_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], chart: str, sentence: str
) -> None:
    code = podium("--chart", chart)

    assert code == 2
    assert capsys.readouterr().err == f"podium: {sentence}\n"


def test_extenders_cannot_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.json"
    extender = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    policy.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", "extenders": [extender]}))

    code = podium("SchedulingBasic", *SMALL, "--policy", str(policy))

    assert code == 2
    assert "extender" in capsys.readouterr().err
