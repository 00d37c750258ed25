"""The benchmark scripts run, and what they find is written down; no figure is judged here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def test_every_script_is_run() -> None:
    scripts = {
        path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py")
    }
    text = (ROOT / "benchmarks" / "report.py").read_text("utf-8")
    sections = text.partition("\nSECTIONS: ")[2]

    assert scripts == set(re.findall(r'^    "(\w+)": ', sections, re.MULTILINE))
