"""Rules of users that fail, print, hang, or take other parameters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from manifests import node, pod

FAILING = """
from podium.rules import predicate


@predicate("Odd")
def odd(pod, node):
    print("looking")
    return 1 // 0
"""


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own.py"


def test_a_failure_has_a_line_and_prints_go_to_stderr(
    podium: Podium, write: Files, rule: Path
) -> None:
    rule.write_text(FAILING)

    result = podium("schedule", write([node("n1"), pod("a")]), "--rules", str(rule))

    assert "ZeroDivisionError: integer division or modulo by zero (own.py:8)" in result.err
    assert "looking" in result.err
    assert "looking" not in result.out


def test_parameters_of_a_rule_are_told_in_words(podium: Podium, write: Files, rule: Path) -> None:
    rule.write_text(FAILING.replace("(pod, node)", "(pod)"))

    result = podium("schedule", write([node("n1"), pod("a")]), "--rules", str(rule))

    assert result.code == 2
    assert "own.py:5) takes (pod) and cannot be called with a pod, a node" in result.err


def test_a_rule_that_does_not_return_is_named(write: Files, rule: Path) -> None:
    rule.write_text(FAILING.replace("    return 1 // 0", "    while True:\n        pass"))
    file = write([node("n1"), pod("a")])
    command = ["schedule", file, "--rules", str(rule), "--rule-seconds", "0.05"]

    done = subprocess.run(
        [sys.executable, "-m", "podium", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "podium: rule Odd has not returned for pod default/a in 0.5 s at " in done.stderr
    assert "own.py:" in done.stderr
