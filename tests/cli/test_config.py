"""`podium config check` and `podium config show`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from cli.conftest import Podium
from podium.cli.main import run
from podium.cluster.queue.pools import Backoff
from podium.host.options import scheduler_options
from podium.library.profile_source import ProfileSource
from profiles.config.documents import HEAD

EXAMPLES = Path(__file__).parents[2] / "examples" / "configs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"{HEAD}profiles:\n- plugins: {{multiPoint: {{enabled: [{{name: NodeAffinity}}]}}}}\n"
    )
    return path


def test_a_configuration_that_is_fine(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", str(file)]) == 0

    assert capsys.readouterr().out.splitlines() == [
        f"{file} is valid for kube-scheduler v1.37",
        "profile default-scheduler: 14 filters, 9 scores",
        "  NodeAffinity is listed under multiPoint without a weight: it is 1, not 2",
    ]


def test_a_configuration_that_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEAD}parallelism: 0\n")

    assert run(["config", "check", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"podium: {path}: parallelism: Invalid value: 0: should be an integer value greater than "
        "zero\n"
    )


def test_every_command_names_the_file_and_says_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: KubeSchedulerConfiguration\nprofiles: []\n")

    for command in (["config", "check", str(path)], ["schedule", "--config", str(path), "x.yaml"]):
        assert run(command) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"podium: {path}: Object 'apiVersion' is missing in 'kind: Kube")
        assert "it begins with apiVersion: kubescheduler.config.k8s.io/v1" in said
        assert said.count("\n") == 1


def test_a_configuration_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it may come through a pipe, and rests go by what profiles were made of."""
    text = f"{HEAD}podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 7\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    chosen = ProfileSource(config="-").choose()

    assert scheduler_options(chosen).behaviour.queue.backoff == Backoff(3.0, 7.0)


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "nowhere.yaml"]) == 2
    assert "nowhere.yaml: cannot be read" in capsys.readouterr().err


def test_gates_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--feature-gates", "Foo=true"]) == 2
    assert capsys.readouterr().err.startswith("podium: unrecognized feature gate: Foo; ")


def test_the_defaults_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--feature-gates", "StorageCapacityScoring=false"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert lines[0] == ["v1.37", "default-scheduler"]
    assert ["TaintToleration", "3", "taints", "that", "the", "pod", "tolerates"] in lines
    assert ["VolumeBinding", '{"bindTimeoutSeconds":600}'] in lines
    assert ["leaderElection.leaseDuration", "15s"] in lines
    assert [line for line in lines if line and line[0].startswith("featureGates.")] == [
        ["featureGates.StorageCapacityScoring", "false"]
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_data_for_programs(file: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", str(file), "-o", output]) == 0
    text = capsys.readouterr().out
    found = json.loads(text) if output == "json" else yaml.safe_load(text)

    [profile] = found["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["plugins"]["score"][1] == {
        "name": "NodeAffinity",
        "description": "node selectors and node affinity",
        "weight": 1,
    }
    assert profile["args"]["DynamicResources"] == {
        "filterTimeout": "10s",
        "bindingTimeout": "10m0s",
    }
    assert profile["args"]["DefaultPreemption"] == {
        "minCandidateNodesPercentage": 10,
        "minCandidateNodesAbsolute": 100,
    }
    assert found["options"]["parallelism"] == 16


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_fine_and_needs_no_notes(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "check", str(path)]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]


def test_an_extender_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", str(EXAMPLES / "gpu-extender.yaml"), "-o", "json"]) == 0
    [extender] = json.loads(capsys.readouterr().out)["extenders"]

    assert extender == {
        "urlPrefix": "http://127.0.0.1:9876/gpus",
        "verbs": {"filter": "filter", "prioritize": "prioritize"},
        "weight": 2,
        "timeoutSeconds": 2.0,
        "managedResources": ["example.com/gpu"],
        "ignorable": False,
    }


def test_list_shows_every_plugin(podium: Podium) -> None:
    assert "NodeResourcesFit" in podium("config", "list").out

    found = {each["name"]: each for each in podium("config", "list", "-o", "json").json["plugins"]}
    assert found["NodeAffinity"]["extensionPoints"] == ["preFilter", "filter", "preScore", "score"]
    assert found["NodeAffinity"]["fields"] == ["addedAffinity"]
    assert found["GangScheduling"]["featureGate"] == "GenericWorkload"
