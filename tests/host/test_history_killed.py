"""A scheduler that is killed while it records: everything that was written is read and equal."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.host.history_rules import recorded_rules
from podium.library.profile_source import ProfileSource
from podium.past.format.reading import History, Torn
from podium.past.replay.past_decisions import Derived, derive_all
from waiting import until

LAB = [sys.executable, "-m", "podium", "lab", "--listen", "127.0.0.1:0", "-o", "json"]


def recorded_and_killed(tmp_path: Path, decisions: int, number: int) -> None:
    """A lab with its small shop, recorded, and killed once so many decisions are written."""
    flags = ["--kubeconfig", str(tmp_path / f"kubeconfig-{number}"), "--record"]
    folder = tmp_path / "history"
    command = [*LAB, *flags, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += program.stdout.readline()
        assert json.loads(text)["pid"] == program.pid
        segment = folder / f"{number + 1:06}.history"
        until(f"{decisions} decisions are written", lambda: written(segment) >= decisions, 120)
        program.send_signal(signal.SIGKILL)


def written(segment: Path) -> int:
    """How many decisions can be read in a segment by now."""
    try:
        return sum(1 for _ in History(segment).decisions())
    except InputError:
        return 0


def assert_equal(folder: Path, kills: list[int]) -> None:
    history = History(folder)
    found = list(derive_all(history, recorded_rules(ProfileSource())))
    decisions = [each for each in found if isinstance(each, Derived)]

    assert [each.difference for each in decisions if each.difference] == []
    assert len(decisions) >= sum(kills)
    assert sum(isinstance(each, Torn) for each in found) <= len(kills)
    assert len(history.segments) >= len(kills)


@pytest.mark.slow
def test_decisions_follow_again_after_kills(tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311  a seed
    kills = [dice.randint(1, 15) for _ in range(2)]
    for number, decisions in enumerate(kills):
        recorded_and_killed(tmp_path, decisions, number)

    assert_equal(tmp_path / "history", kills)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_decisions_follow_again_after_twenty_kills(tmp_path: Path) -> None:
    dice = random.Random(2)  # noqa: S311  a seed
    kills = [dice.randint(1, 20) for _ in range(20)]
    for number, decisions in enumerate(kills):
        recorded_and_killed(tmp_path, decisions, number)

    assert_equal(tmp_path / "history", kills)
