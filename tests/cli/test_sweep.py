"""`podium sweep`: an experiment is run, reported, and taken up again."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Podium
from research.sweeps.small_experiment import write_experiment
from waiting import until

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


@pytest.mark.parametrize(
    ("engine", "number", "to_all", "code", "sentence"),
    [
        ([], signal.SIGINT, False, 130, "interrupted"),
        ([], signal.SIGINT, True, 130, "interrupted"),
        ([], signal.SIGTERM, False, 143, "ended by SIGTERM"),
        ([], signal.SIGTERM, True, 143, "ended by SIGTERM"),
        (["--dask", "local"], signal.SIGINT, True, 130, "interrupted"),
        (["--dask", "local"], signal.SIGTERM, False, 143, "ended by SIGTERM"),
    ],
    ids=[
        "an interrupt",
        "an interrupt of all its processes",
        "SIGTERM",
        "SIGTERM to all its processes",
        "Dask, an interrupt of all processes",
        "Dask, SIGTERM",
    ],
)
def test_a_sweep_that_is_ended_reports_what_is_finished(
    tmp_path: Path,
    engine: list[str],
    number: signal.Signals,
    to_all: bool,
    *,
    code: int,
    sentence: str,
) -> None:
    process, out = sleeping_sweep(tmp_path, ["--jobs", "2", *engine])
    with process:
        until("the sweep comes to that", lambda: kept(out) > 0, 120)
        (os.killpg if to_all else os.kill)(process.pid, number)
        printed, told = process.communicate(timeout=120)

    assert told == f"podium: note: {sentence}; the same command goes on from here\n"
    assert process.returncode == code
    assert kept(out) in (1, 2)
    assert printed.startswith(f"small: {kept(out)} of 6 runs finished")
    assert len((out / "results.csv").read_text().splitlines()) == 1 + kept(out)
    until("the sweep comes to that", lambda: not group_members(process.pid), 120)


def test_an_interrupt_while_processes_start_is_one_sentence(tmp_path: Path) -> None:
    process, out = sleeping_sweep(tmp_path, ["--jobs", "2"])
    with process:
        until("the sweep comes to that", lambda: len(group_members(process.pid)) > 2, 120)
        os.killpg(process.pid, signal.SIGINT)
        printed, told = process.communicate(timeout=120)

    assert told == "podium: note: interrupted; the same command goes on from here\n"
    assert process.returncode == 130
    # One that starts fast may have finished a run before it hears of the interrupt.
    assert printed.startswith(f"small: {kept(out)} of 6 runs finished")
    until("the sweep comes to that", lambda: not group_members(process.pid), 120)


def test_a_sweep_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    process, out = sleeping_sweep(tmp_path, ["--jobs", "2"])
    with process:
        until("the sweep comes to that", lambda: kept(out) > 0, 120)
        process.kill()
        _, told = process.communicate(timeout=120)

    assert told == ""
    until("the sweep comes to that", lambda: not group_members(process.pid), 120)


def sleeping_sweep(folder: Path, flags: list[str]) -> tuple[subprocess.Popen[str], Path]:
    """A sweep in a process group of its own; its first seed is finished soon, the others never."""
    path, out = write_experiment(folder / "in"), folder / "out"
    study = folder / "in" / "study.py"
    study.write_text(
        study.read_text().replace(
            "    return trace.with",
            "    __import__('time').sleep(600 * (seed > 1))\n    return trace.with",
        )
    )
    command = [sys.executable, "-m", "podium", "sweep", path, "--out", str(out), *flags]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    return process, out


def kept(out: Path) -> int:
    """How many cells are finished."""
    found = out / "cells.jsonl"
    return found.read_bytes().count(b"\n") if found.exists() else 0


def group_members(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def test_bad_input_is_one_sentence(podium: Podium, tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    result = podium("sweep", path, "--only", "nothing")
    assert (result.code, result.err) == (
        2,
        f"podium: {path}: no cell has nothing in its name\n",
    )
    (tmp_path / "pods.csv").unlink()
    assert "pods.csv: cannot be read" in podium("sweep", path).err
