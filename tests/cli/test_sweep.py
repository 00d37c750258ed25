"""`podium sweep`: an experiment is run, reported, and taken up again."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Podium
from sweeps.small_experiment import write_experiment

pytestmark = pytest.mark.slow


def test_results_are_written_and_finished_cells_are_kept(podium: Podium, tmp_path: Path) -> None:
    path, out = write_experiment(tmp_path / "in"), tmp_path / "out"
    result = podium("sweep", path, "--out", str(out), "--jobs", "2", "--parquet", "--only", "pack")

    assert result.code == 0
    assert result.lines[0].startswith("small: 3 of 3 runs finished, ")
    assert result.lines[2] == "pods, mean ± standard deviation"
    assert sorted(each.name for each in out.iterdir()) == [
        "cells.jsonl",
        "charts.html",
        "results.csv",
        "results.parquet",
        "summary.csv",
    ]
    before = (out / "results.csv").read_text()
    again = podium("sweep", path, "--out", str(out), "--jobs", "1", "-o", "json")

    assert "3 of 6 runs are finished already" in again.err
    found = json.loads(again.out)
    assert (found["cells"], found["finished"], found["failed"]) == (6, 6, [])
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [row["configuration"] for row in rows] == ["spread"] * 3 + ["pack"] * 3
    assert (out / "results.csv").read_text().splitlines()[4:] == before.splitlines()[1:]
    assert found["summary"][0] == {
        "workload": "shop",
        "configuration": "spread",
        "figure": "pods",
        "runs": 3,
        "mean": 5.0,
        "sd": 0.0,
        "min": 5,
        "max": 5,
    }


def test_a_run_that_fails_is_told_and_the_others_are_kept(podium: Podium, tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "in")
    study = tmp_path / "in" / "study.py"
    study.write_text(
        study.read_text().replace(
            "    return trace.with", "    1 // (seed - 3)\n    return trace.with"
        )
    )
    result = podium("sweep", path, "--out", str(tmp_path / "out"), "--jobs", "1")

    assert result.code == 1
    assert result.lines[0].startswith("small: 4 of 6 runs finished")
    assert "shop, spread, seed 3: ZeroDivisionError" in result.err


def test_an_interrupted_sweep_reports_what_is_finished(tmp_path: Path) -> None:
    path, out = write_experiment(tmp_path / "in"), tmp_path / "out"
    study = tmp_path / "in" / "study.py"
    study.write_text(
        study.read_text().replace(
            "    return trace.with",
            "    __import__('time').sleep(600 * (seed > 1))\n    return trace.with",
        )
    )
    command = [sys.executable, "-m", "podium", "sweep", path, "--out", str(out), "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        kept = out / "cells.jsonl"
        wait_until(lambda: kept.exists() and kept.read_bytes().endswith(b"\n"))
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=120)

    assert process.returncode == 130
    assert printed.startswith("small: 1 of 6 runs finished")
    assert told == "podium: note: interrupted; the same command goes on from here\n"
    assert len((out / "results.csv").read_text().splitlines()) == 2


def wait_until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(6000):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError("it never came to that")


def test_bad_input_is_one_sentence(podium: Podium, tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    result = podium("sweep", path, "--only", "nothing")
    assert (result.code, result.err) == (
        2,
        f"podium: {path}: no cell has nothing in its name\n",
    )
    (tmp_path / "pods.csv").unlink()
    assert "pods.csv: cannot be read" in podium("sweep", path).err
