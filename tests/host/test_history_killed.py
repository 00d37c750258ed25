"""A scheduler that is killed while it records: everything that was written is read and equal."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.daemon.hindsight.seeking import Derived, derive_all
from podium.history.reading import History, Torn
from podium.host.history_rules import recorded_rules
from podium.library.profile_source import ProfileSource

LAB = [sys.executable, "-m", "podium", "lab", "--listen", "127.0.0.1:0", "-o", "json"]


def recorded_and_killed(tmp_path: Path, seconds: float, number: int) -> None:
    """A lab with its small shop, recorded, and killed some time after it is ready."""
    flags = ["--kubeconfig", str(tmp_path / f"kubeconfig-{number}"), "--record"]
    command = [*LAB, *flags, str(tmp_path / "history")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += program.stdout.readline()
        assert json.loads(text)["pid"] == program.pid
        time.sleep(seconds)
        program.send_signal(signal.SIGKILL)


def assert_equal(folder: Path, kills: int) -> None:
    history = History(folder)
    found = list(derive_all(history, recorded_rules(ProfileSource())))
    decisions = [each for each in found if isinstance(each, Derived)]

    assert [each.difference for each in decisions if each.difference] == []
    assert len(decisions) > 20 * kills
    assert sum(isinstance(each, Torn) for each in found) <= kills
    assert len(history.segments) >= kills


@pytest.mark.slow
def test_decisions_follow_again_after_kills(tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311  a seed
    for number in range(2):
        recorded_and_killed(tmp_path, 1 + dice.random() * 3, number)

    assert_equal(tmp_path / "history", 2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_decisions_follow_again_after_twenty_kills(tmp_path: Path) -> None:
    dice = random.Random(2)  # noqa: S311  a seed
    for number in range(20):
        recorded_and_killed(tmp_path, 1 + dice.random() * 6, number)

    assert_equal(tmp_path / "history", 20)
