"""docs/running.md, followed step by step."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from control_plane.harness import ADMIN, ROOT, ControlPlane
from podium.cli.main import run

PAGE = (ROOT / "docs" / "running.md").read_text("utf-8")


def steps() -> list[str]:
    """The commands to be typed on one's own machine."""
    return re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def machine(control_plane: ControlPlane, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A shell with podium and kubectl, and a cluster with a node."""
    podium = tmp_path / "bin" / "podium"
    podium.parent.mkdir()
    podium.write_text(f'#!/bin/sh\nexec {sys.executable} -m podium "$@"\n')
    podium.chmod(podium.stat().st_mode | stat.S_IXUSR)
    control_plane.clear_nodes()
    control_plane.add_node("n1", {})
    yield {
        **os.environ,
        "PATH": f"{podium.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "KUBECONFIG": str(control_plane.kubeconfig(ADMIN)),
    }
    control_plane.clear_nodes()


def test_the_steps_from_your_machine_work_as_written(
    machine: dict[str, str], tmp_path: Path
) -> None:
    script = "set -euo pipefail -m\n" + "\n".join(steps())
    done = subprocess.run(
        ["bash", "-c", script],
        env=machine,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "ready.txt").read_text() == "ok"
    assert "0 placements compared" in done.stdout
    assert re.search(r"^hello .* n1 ", done.stdout, re.MULTILINE), done.stdout
    assert "default/hello goes to n1" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_folders_it_names_can_be_applied(machine: dict[str, str]) -> None:
    named = sorted(set(re.findall(r"kubectl (?:apply|delete) -k (\S+?)[`\s.]", PAGE)))
    assert named == ["deploy", "deploy/monitoring", "deploy/shadow"]

    for folder in named:
        built = subprocess.run(
            ["kubectl", "kustomize", ROOT / folder], capture_output=True, text=True, check=True
        ).stdout
        kinds = {each["kind"] for each in yaml.safe_load_all(built)}
        if "ServiceMonitor" in kinds:
            continue
        # The API server of the tests is older than policy/v1; the fields are the same.
        older = built.replace("policy/v1\n", "policy/v1beta1\n")
        applied = subprocess.run(
            ["kubectl", "create", "--dry-run=client", "--validate=false", "-f", "-", "-o", "name"],
            input=older,
            env=machine,
            capture_output=True,
            text=True,
            check=False,
        )
        assert applied.returncode == 0, applied.stderr
        assert len(applied.stdout.splitlines()) == built.count("\nkind: ") + built.startswith(
            "kind"
        )


@pytest.mark.parametrize("name", ["snapshot", "run", "why", "schedule"])
def test_every_flag_that_it_names_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    used = {
        flag
        for line in re.findall(rf"podium {name}\b([^`\n]*)", PAGE)
        for flag in re.findall(r"(?<!\S)(--[a-z-]+)", line)
    }

    assert run([name, "--help"]) == 0

    assert used <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_every_metric_that_it_names_is_served() -> None:
    from podium.daemon.metrics import Metrics  # noqa: PLC0415
    from podium.daemon.shadow import Shadow  # noqa: PLC0415

    metrics, shadow = Metrics(), Shadow()
    metrics.more.append(shadow.families)
    text = metrics.exposition()[0].decode()
    served = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    named = set(re.findall(r"`((?:scheduler|podium)_[a-z_]+)", PAGE))
    assert named <= served
