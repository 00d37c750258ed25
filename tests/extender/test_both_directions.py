"""Podium asks Podium: rules behind an extender decide as the same rules in the profile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.cli.main import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples" / "cluster")
RULES = """
from podium.rules import predicate, priority

@predicate("OddNodes", reason="node(s) were even", depends="node")
def odd_nodes(pod, node):
    return node.name.endswith("1") or pod.namespace != "shop"

@priority("LateZones", normalize="max", depends="node")
def late_zones(pod, node):
    return ord(node.name[0])
"""


@contextmanager
def serving(rules: Path, *flags: str) -> Iterator[str]:
    """`podium extender` on some port; its address."""
    command = [
        sys.executable,
        "-m",
        "podium",
        "extender",
        "--rules",
        str(rules),
        "--listen",
        "127.0.0.1:0",
        *flags,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            yield address[0]
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize("cached", ["true", "false"])
def test_the_same_placements(
    cached: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(RULES, "utf-8")
    own = tmp_path / "own.yaml"
    own.write_text("kind: Policy\napiVersion: v1\n", "utf-8")
    # An extender that is asked about victims makes a scheduler forget budgets: nobody is evicted.
    flags = ["--no-preemption", "-o", "name"]
    run(["schedule", CLUSTER, "--policy", str(own), "--rules", str(rules), *flags])
    inside = capsys.readouterr().out

    with serving(rules, "-f", CLUSTER) as url:
        asking = tmp_path / "asking.yaml"
        asking.write_text(
            "kind: Policy\napiVersion: v1\nextenders:\n"
            f"- {{urlPrefix: '{url}', filterVerb: filter, prioritizeVerb: prioritize, weight: 1,"
            f" nodeCacheCapable: {cached}}}\n",
            "utf-8",
        )
        run(["schedule", CLUSTER, "--policy", str(asking), *flags])
        outside = capsys.readouterr().out

    assert outside == inside
    assert "shop/web" in outside


def test_an_extender_with_nothing_to_serve(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["extender"]) == 2
    assert "nothing to serve; give --rules, " in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(RULES, "utf-8")
    with serving(rules) as url:
        port = url.rpartition(":")[2]
        assert run(["extender", "--rules", str(rules), "--listen", f"127.0.0.1:{port}"]) == 2

    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in capsys.readouterr().err
