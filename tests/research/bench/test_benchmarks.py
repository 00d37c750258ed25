"""The benchmark scripts run, and what they find is written down; no figure is judged here."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SECTIONS = (
    "# Benchmark results",
    "## 5,000 nodes, 1,000 pods one after the other",
    "## Growth: SchedulingBasic in larger clusters",
    "## 200 nodes and 2,000 pods in memory",
    "## Preemption in a full cluster",
    "## Start-up",
    "## Work on all cores",
    "## Rules of your own",
    "## A realistic mix",
    "## All workloads",
    "## Devices",
    "## A large cluster on a real API server",
)


def test_every_benchmark_has_its_section() -> None:
    before = (ROOT / "benchmarks" / "RESULTS.md").read_bytes()

    told = subprocess.run(
        [sys.executable, "benchmarks/run.py", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    lines = told.stdout.splitlines()
    assert [line for line in lines if line in SECTIONS] == list(SECTIONS)
    assert [line for line in lines if line.startswith("### ")] != []
    # Small numbers are for trying it out; they do not replace the real ones.
    assert (ROOT / "benchmarks" / "RESULTS.md").read_bytes() == before


CASE = """\
- name: {name}
  workloadTemplate:
  - {{opcode: createNodes, count: 3}}
  - {{opcode: {opcode}, count: 5, collectMetrics: true}}
  workloads:
  - {{name: Any, threshold: {threshold}}}
"""


def test_workloads_of_upstream_stand_beside_their_thresholds(tmp_path: Path) -> None:
    """One that cannot be run is told, and the others are run."""
    for folder, limit in (("misc", "70"), ("dra", "{dra: 50}")):
        path = tmp_path / folder / "performance-config.yaml"
        path.parent.mkdir()
        runs = CASE.format(name=f"Runs-{folder}", opcode="createPods", threshold=limit)
        fails = CASE.format(name=f"Fails-{folder}", opcode="unheardOf", threshold=limit)
        path.write_text(runs + fails)
    environment = {**os.environ, "PODIUM_SCHEDULER_PERF": str(tmp_path)}

    for name, folder, threshold in (("upstream", "misc", 70), ("devices", "dra", 50)):
        told = subprocess.run(
            [sys.executable, "benchmarks/run.py", "--quick", "--only", name],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout
        rows = {line.split(" | ")[0]: line for line in told.splitlines()}
        assert f" {threshold} |" in rows[f"| Runs-{folder}/Any"]
        assert "unheardOf" in rows[f"| Fails-{folder}/Any"]


def test_a_section_that_cannot_be_measured_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    run = importlib.import_module("run")
    where = {"date": "2030-01-01", "load when started": "0.1", "load at the end": "0.2"}
    before = "# Results\n\n## Devices\n\nold\n\n## Causes\n\nold\n\n## Goals\n\nkept\n"
    line = {"workload": "Claims", "nodes": 5, "pods": 6, "podsPerSecond": 7, "cpuMsPerPod": 0.1}

    text = run.written(before, where, {"devices": [{**line, "threshold": None}], "upstream": []})

    assert "## Causes\n\nold\n\n## Goals\n\nkept\n" in text
    assert "| Claims | 5 | 6 | 7 |" in text
    assert text.count("## Devices") == 1
    assert "2030-01-01, load when started: 0.1, at the end: 0.2" in text


def test_every_script_is_run() -> None:
    scripts = {
        path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py")
    }
    text = (ROOT / "benchmarks" / "report.py").read_text("utf-8")
    sections = text.partition("\nSECTIONS: ")[2]

    assert scripts == set(re.findall(r'^    "(\w+)": ', sections, re.MULTILINE))
