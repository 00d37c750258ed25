"""`podium verify`: recordings of the real program, whole, changed, and broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Files, Podium
from manifests import listed, node, pod

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.13"


def recorded(file: str, index: int = 0) -> Any:
    return json.loads((GOLDEN / f"{file}.jsonl").read_text().splitlines()[index])


def text(*scenarios: Any) -> str:
    return "".join(json.dumps(scenario) + "\n" for scenario in scenarios)


def test_a_folder_of_recordings_is_replayed_file_by_file(podium: Podium, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text(recorded("ports", 0), recorded("ports", 1)))
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as packed:
        packed.write(text(recorded("taints")))
    (tmp_path / "notes.txt").write_text("not a recording")

    result = podium("history", "verify", str(tmp_path))

    assert result.code == 0
    assert result.lines[0] == "recordings of v1.13, replayed"
    rows = [line.split() for line in result.lines[2:6]]
    assert rows[0] == ["FILE", "SCENARIOS", "STEPS", "DIFFERENCES"]
    assert rows[1][1] == "2"
    assert rows[2][0].endswith("b.jsonl.gz")
    assert rows[3][0] == "total"
    assert result.lines[-1] == "no differences"


def test_an_empty_file_in_a_folder_is_noted(podium: Podium, tmp_path: Path) -> None:
    """The other files are replayed; a file that is named itself must have a scenario."""
    (tmp_path / "a.jsonl").write_text(text(recorded("ports")))
    empty = tmp_path / "b.jsonl.gz"
    empty.write_bytes(gzip.compress(b""))

    result = podium("history", "verify", str(tmp_path))
    named = podium("history", "verify", str(tmp_path / "a.jsonl"), str(empty))

    assert result.code == 0
    assert result.err == f"podium: note: {empty} has no scenario in it\n"
    assert result.lines[-1] == "no differences"
    assert "b.jsonl.gz" not in result.out
    assert named.code == 2
    assert f"{empty}: has no scenario in it" in named.err


def test_a_difference_is_shown_in_full(podium: Podium, write: Files) -> None:
    scenario = recorded("mixed")
    step = next(s for s in scenario["expected"]["steps"] if len(s.get("feasible", ())) > 1)
    step["host"] = "elsewhere"
    index = scenario["expected"]["steps"].index(step) + 1
    file = write(text(scenario), "changed.jsonl")

    result = podium("history", "verify", file)

    assert result.code == 1
    assert result.lines[3].split()[1:] == ["1", str(len(scenario["expected"]["steps"])), "1"]
    assert "1 difference" in result.lines
    place = f"{scenario['name']}: step {index}, {step['pod']}, attempt {step['attempt']}: host"
    assert place in result.lines
    assert f"  in        {file}:1" in result.lines
    assert '  expected  "elsewhere"' in result.lines


def test_only_the_first_differences_are_shown(podium: Podium, write: Files) -> None:
    scenario = recorded("mixed")
    for step in scenario["expected"]["steps"]:
        step["pod"] += "x"
    count = len(scenario["expected"]["steps"])
    file = write(text(scenario), "changed.jsonl")

    assert f"{count} differences, the first 10 in full" in podium("history", "verify", file).out
    assert (
        f"{count} differences, the first 3 in full"
        in podium("history", "verify", "--most", "3", file).out
    )
    report = podium("history", "verify", file, "--most", "2", "-o", "json").json
    assert (report["differences"], len(report["first"])) == (count, 2)


def test_json_and_yaml_say_the_same(podium: Podium, write: Files) -> None:
    scenario = recorded("policy_variants")
    scenario["expected"]["predicates"] = ["None"]
    file = write(text(scenario), "changed.jsonl")

    result = podium("history", "verify", file, "-o", "json")

    assert result.code == 1
    assert result.json["kind"] == "ParityReport"
    assert result.json["first"][0]["field"] == "predicates"
    assert result.json["first"][0]["where"] == f"{file}:1"
    assert yaml.safe_load(podium("history", "verify", file, "-o", "yaml").out) == result.json


def broken(**changes: Any) -> Any:
    return recorded("ports") | changes


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param('{"name": ', ":1: is not readable JSON: ", id="truncated"),
        pytest.param("\n\nnot json\n", ":3: is not readable JSON: ", id="not JSON"),
        pytest.param(b"\xff\xfe\x00", ":1: is not readable JSON: ", id="binary"),
        pytest.param("[1, 2]\n", ":1: is not a recorded scenario: ", id="a list"),
        pytest.param("{}\n", "missing required field name", id="no fields"),
        pytest.param(
            text(broken(pending={})), "expected array, got object - at pending", id="wrong type"
        ),
        pytest.param(
            text(broken(options={"afterPreemption": "later"})), "afterPreemption", id="option"
        ),
        pytest.param(
            text(broken(objects=[{"kind": "Node", "metadata": {"name": 1}}])),
            "Node: metadata.name: expected text",
            id="an object of the wrong shape",
        ),
        pytest.param(
            text(broken(objects=[], pending=[{"spec": {"containers": [
                {"resources": {"requests": {"cpu": "lots"}}}]}}])),
            "lots",
            id="a bad quantity",
        ),
        pytest.param("kind: Node", "is not readable JSON: invalid character", id="YAML"),
        pytest.param('{"policy": ' * 100_000, "is not readable JSON", id="nested too deeply"),
    ],
)  # fmt: skip
def test_an_unreadable_recording_exits_2_and_says_where(
    podium: Podium, write: Files, content: str | bytes, sentence: str
) -> None:
    file = write(content, "bad.jsonl")

    result = podium("history", "verify", file)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"podium: {file}:")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_a_recording_with_extenders_cannot_be_replayed(podium: Podium, write: Files) -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "extenders": [{"urlPrefix": "http://x/"}]}
    scenario = broken(policy=policy)

    result = podium("history", "verify", write(text(scenario), "extended.jsonl"))

    assert result.code == 2
    assert "asks extenders, whose answers a recording does not hold" in result.err


@pytest.mark.parametrize("name", ["missing.jsonl", "cut.jsonl.gz", "plain.jsonl.gz"])
def test_a_file_that_cannot_be_read(podium: Podium, write: Files, name: str) -> None:
    if name == "cut.jsonl.gz":
        name = write(gzip.compress(text(recorded("ports")).encode())[:-20], name)
    elif name == "plain.jsonl.gz":
        name = write(text(recorded("ports")), name)

    result = podium("history", "verify", name)

    assert result.code == 2
    assert result.err.startswith(f"podium: {name}: ")
    assert len(result.err.splitlines()) == 1


def test_a_folder_without_recordings(podium: Podium, tmp_path: Path) -> None:
    result = podium("history", "verify", str(tmp_path))

    assert result.code == 2
    assert result.err.endswith("recordings end in .jsonl or .jsonl.gz\n")


@pytest.mark.parametrize("release", ["v1.34", "v1.35", "v1.36", "v1.37"])
def test_a_recording_of_ones_own_tells_its_release(
    podium: Podium, write: Files, release: str
) -> None:
    cluster = write([node("n", "1"), pod("large", "4", uid="large")])
    made = podium("schedule", cluster, "-o", "recording", "--profile", release).out

    assert json.loads(made)["release"] == release
    assert podium("history", "verify", write(made, "mine.jsonl")).code == 0


@pytest.mark.parametrize(
    ("folder", "file"),
    [("v1.36-devices", "basic"), ("v1.36", "interpod_affinity"), ("v1.36", "volumes")],
)
def test_a_recording_of_ones_own_has_all_that_was_decided_by(
    podium: Podium, write: Files, folder: str, file: str
) -> None:
    lines = (GOLDEN.parent / folder / f"{file}.jsonl").read_text().splitlines()
    for number in range(5):
        scenario = json.loads(lines[number])
        items = [*scenario["objects"], *(each | {"kind": "Pod", "apiVersion": "v1"}
                                         for each in scenario["pending"])]  # fmt: skip
        text = json.dumps(listed(items))
        flags = ("-o", "recording", "--profile", "v1.36", "--strict=false")
        made = podium("schedule", write(text, f"c{number}.json"), *flags).out

        checked = podium("history", "verify", write(made, f"mine{number}.jsonl"))
        assert checked.code == 0, checked.out
