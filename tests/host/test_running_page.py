"""docs/running.md, followed step by step."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError

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
    given_back(control_plane)
    yield {
        **os.environ,
        "PATH": f"{podium.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "KUBECONFIG": str(control_plane.kubeconfig(ADMIN)),
    }
    control_plane.clear_nodes()


def given_back(plane: ControlPlane) -> None:
    """The lease that replicas in the cluster leave when they end: nobody holds it."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/podium-system/leases"
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
    with suppress(HTTPError):
        plane.post("/api/v1/namespaces", {"metadata": {"name": "podium-system"}})
    with suppress(HTTPError):
        plane.call("DELETE", f"{leases}/podium")
    plane.post(leases, {"metadata": {"name": "podium"}, "spec": spec})


def test_the_steps_from_your_machine_work_as_written(
    machine: dict[str, str], tmp_path: Path
) -> None:
    script = "set -euo pipefail -m\n" + "\n".join(steps())
    # Programs in the background end with the script, so that they do not outlive a step that fails.
    script = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + script
    shell = subprocess.Popen(
        ["bash", "-c", script],
        env=machine,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = shell.communicate(timeout=300)
    finally:
        shell.terminate()

    assert shell.returncode == 0, out + err
    assert (tmp_path / "ready.txt").read_text() == "ok"
    assert "0 placements compared" in out
    assert re.search(r"^hello .* n1 ", out, re.MULTILINE), out
    assert "default/hello goes to n1" in out
    assert "Traceback" not in err


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


@pytest.mark.parametrize("name", ["snapshot", "run", "explain", "schedule"])
def test_every_flag_that_it_names_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    used = {
        flag
        for line in re.findall(rf"podium {name}\b([^`\n]*)", PAGE)
        for flag in re.findall(r"(?<!\S)(--[a-z-]+)", line)
    }

    assert run([name, "--help"]) == 0

    assert used <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_every_metric_that_it_names_is_served() -> None:
    from podium.past.judge.agreement import Agreement  # noqa: PLC0415
    from podium.scheduler.telemetry.metrics import Metrics  # noqa: PLC0415

    metrics, shadow = Metrics(), Agreement()
    metrics.more.append(shadow.families)
    text = metrics.exposition()[0].decode()
    served = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    named = set(re.findall(r"`((?:scheduler|podium)_[a-z_]+)", PAGE))
    assert named <= served
