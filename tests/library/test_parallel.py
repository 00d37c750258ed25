"""Work in several processes: the same results, and no process that is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from podium.library.parallel import in_parallel

#: A command that works in two processes, and never ends.
SLEEPING = """
import sys, time
from podium.cli import main
from podium.library.parallel import in_parallel

def sleep(*_, **__):
    for index, _ in in_parallel([lambda: None, *[lambda: time.sleep(600)] * 4], 2):
        print("begun", flush=True)

main.app.main = sleep
sys.exit(main.run([]))
"""


def test_work_comes_with_its_index() -> None:
    work = [lambda number=number: number * number for number in range(5)]

    assert sorted(in_parallel(work, 2)) == [(n, n * n) for n in range(5)]


@pytest.mark.parametrize(("pieces", "workers"), [(5, 1), (1, 4)])
def test_one_worker_or_one_piece_of_work_needs_no_process(pieces: int, workers: int) -> None:
    results = in_parallel([os.getpid] * pieces, workers)

    assert {result for _, result in results} == {os.getpid()}


def test_an_error_of_the_work_is_raised_and_ends_the_processes() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_parallel([lambda: 1 // 0] * 3, 2))

    assert not multiprocessing.active_children()


def test_processes_end_when_no_more_results_are_wanted() -> None:
    def interrupted() -> None:
        for _ in in_parallel([os.getpid] * 9, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert not multiprocessing.active_children()


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [False, True], ids=["to the command", "to all its processes"])
@pytest.mark.parametrize(
    ("number", "sentence", "code"),
    [
        (signal.SIGINT, "podium: interrupted\n", 130),
        (signal.SIGTERM, "", -signal.SIGTERM),
        (signal.SIGKILL, "", -signal.SIGKILL),
    ],
    ids=["an interrupt", "SIGTERM", "SIGKILL"],
)
def test_a_command_that_is_ended_leaves_no_process(
    number: signal.Signals, sentence: str, code: int, *, to_all: bool
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPING],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        (os.killpg if to_all else os.kill)(process.pid, number)
        # All of its processes have these streams: they are closed when the last one has ended.
        _, told = process.communicate(timeout=120)

    assert (told, process.returncode) == (sentence, code)
