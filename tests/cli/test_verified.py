"""`--verify` and `replay --plain`: decisions made again without kept answers, as a user asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import node as node_object
from builders import pod as pod_object
from cli.conftest import Files, Podium
from manifests import node, pod
from past.judge.driver import Driver
from podium.library.profile_source import ProfileSource
from scheduler.fakes import PROFILES

#: This rule states that it reads the node alone, and counts besides how often it was asked: answers
#: that are kept are wrong once it would give others.
RULE = """
from collections import Counter
from podium.rules import predicate

asked = Counter()

@predicate("Tires", depends="node")
def tires(pod, node):
    asked[node.name] += 1
    return node.name == "n2" or asked[node.name] <= 3
"""
SMALL = ("--nodes", "5", "--existing", "2", "--pods", "9")


@pytest.fixture
def rule(tmp_path: Path) -> str:
    path = tmp_path / "tires.py"
    path.write_text(RULE)
    return str(path)


def some_pods(write: Files) -> str:
    nodes = [node("n1", cpu="64"), node("n2", cpu="8")]
    return write([*nodes, *(pod(f"p{number}", cpu="1") for number in range(6))])


def test_decisions_that_are_equal_are_counted(podium: Podium, write: Files) -> None:
    result = podium("schedule", some_pods(write), "--verify")

    assert result.code == 0
    text = "podium: note: 6 decisions made twice, from kept answers and without any: all equal\n"
    assert result.err == text
    assert podium("schedule", some_pods(write)).out == result.out


def test_decisions_that_differ_are_shown_and_those_without_kept_answers_are_used(
    podium: Podium, write: Files, rule: str
) -> None:
    file = some_pods(write)
    result = podium("schedule", file, "--rules", rule, "-o", "name", "--verify")
    without = podium("schedule", file, "--rules", rule, "-o", "name")

    assert result.code == 3
    placed = dict(line.split() for line in result.lines)
    assert {placed["default/p4"], placed["default/p5"]} == {"n2"}
    assert dict(line.split() for line in without.lines)["default/p4"] == "n1"
    first, second, *_ = result.err.splitlines()
    assert first.startswith("podium: note: 6 decisions made twice")
    assert first.endswith(" differ")
    assert "verdict of n1: fits instead of Tires" in second
    assert "node: n1 instead of n2" in second


def test_a_recording_is_made_plainly(podium: Podium, write: Files) -> None:
    result = podium("schedule", some_pods(write), "-o", "recording", "--verify")

    assert result.code == 2
    assert "-o recording" in result.err


def test_a_workload_is_verified(podium: Podium) -> None:
    result = podium("bench", "SchedulingBasic", *SMALL, "--verify")

    assert result.code == 0
    assert "11 decisions made twice, from kept answers and without any: all equal" in result.err


def test_a_workload_with_wrong_kept_answers_is_found_out(podium: Podium, rule: str) -> None:
    result = podium("bench", "SchedulingBasic", *SMALL, "--verify", "--rules", rule)

    assert result.code == 3
    assert "instead of Tires" in result.err


def test_plain_and_verify_exclude_each_other(podium: Podium) -> None:
    assert podium("bench", "SchedulingBasic", *SMALL, "--verify", "--plain").code == 2


def recorded(folder: Path, rule: str) -> str:
    """A history in which kept answers were wrong, and nothing noticed."""
    _, behaviour = PROFILES["v1.37"]
    profile = ProfileSource(rules=(rule,)).choose().profile
    driver = Driver(folder, profile, behaviour)
    driver.put(node_object("n1", cpu=64))
    driver.put(node_object("n2", cpu=8))
    for number in range(6):
        driver.put(pod_object(f"p{number}", requests={"cpu": 1}))
        driver.turn()
    driver.recorder.close()
    return str(folder)


def test_a_plain_replay_finds_decisions_that_kept_answers_made_wrong(
    podium: Podium, tmp_path: Path, rule: str
) -> None:
    history = recorded(tmp_path / "history", rule)

    usual = podium("history", "replay", history, "--rules", rule)
    plain = podium("history", "replay", history, "--rules", rule, "--plain")

    assert (usual.code, usual.out) == (0, "6 decisions made again, 6 equal\n")
    assert plain.code == 1
    assert plain.lines[0] == "6 decisions made again, 3 equal"
    assert "n2 instead of n1" in plain.out


def test_a_plain_replay_makes_all_decisions(podium: Podium, tmp_path: Path, rule: str) -> None:
    history = recorded(tmp_path / "history", rule)

    result = podium("history", "replay", history, "--plain", "--pod", "p1")

    assert result.code == 2
    assert "--plain makes all decisions again" in result.err


def test_a_recorded_decision_is_played_step_by_step(
    podium: Podium, tmp_path: Path, rule: str
) -> None:
    history = recorded(tmp_path / "history", rule)

    page = podium("history", "replay", history, "--rules", rule, "--pod", "p1", "-o", "html").out

    assert '<div id="player"></div>' in page
    assert '"trace"' in page
