"""A history that goes on with other rules, or with its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import pytest

from builders import node, pod
from past.judge.driver import NOON, Driver
from podium.past.format.reading import History
from podium.past.format.writing import Limits
from podium.past.replay.other_rules import Continuation
from podium.past.replay.replay import Rules
from scheduler.fakes import PROFILES

PROFILE, BEHAVIOUR = PROFILES["v1.37"]
OWN = Rules({PROFILE.scheduler_name: PROFILE}, BEHAVIOUR)
#: Ties are drawn.
DRAWN = dataclasses.replace(PROFILE, ties="random:3")


def recorded(folder: Path, pods: int) -> Driver:
    """Pods that come one after the other, and are bound at once, on four nodes."""
    limits = Limits(segment_records=40, batch_records=4)
    driver = Driver(folder, PROFILE, BEHAVIOUR, limits=limits)
    dice = Random(1)  # noqa: S311  a seed
    for number in range(4):
        driver.put(node(f"n{number}", cpu=8))
    for number in range(pods):
        driver.now += 1
        driver.put(pod(f"p{number}", uid=f"u{number}", requests={"cpu": "500m"}))
        taken = driver.turn()
        assert taken is not None
        driver.bind(taken[0].pod, dice)
        driver.recorder.flush()
    driver.recorder.close()
    return driver


@pytest.mark.parametrize("start", [0.0, NOON + 11.5])
def test_the_same_rules_change_nothing(tmp_path: Path, start: float) -> None:
    recorded(tmp_path, 30)
    found = Continuation(lambda _: OWN, OWN, start)

    found.run(History(tmp_path).entries(), moments=5)

    assert len(History(tmp_path).segments) > 1
    assert found.differences() == []
    last = found.moments[-1]
    expected = 30 if not start else 19
    assert (last.recorded, last.other) == ((expected, 0), (expected, 0))
    assert (last.same, last.different, last.pending) == (expected, 0, 0)
    placed = [each.recorded[0] for each in found.moments]
    assert placed == sorted(placed)
    assert len(placed) >= 5


def test_other_rules_place_elsewhere_from_then_on(tmp_path: Path) -> None:
    recorded(tmp_path, 20)
    other = Rules({DRAWN.scheduler_name: DRAWN}, BEHAVIOUR)
    found = Continuation(lambda _: OWN, other, NOON + 10.5)

    found.run(History(tmp_path).entries())

    # Before that moment pods are where they were.
    assert set(found.ours) == {f"u{number}" for number in range(10, 20)}
    names = [name for name, _, _ in found.differences()]
    assert 0 < len(names) == found.moments[-1].different
    assert all(theirs != ours for _, theirs, ours in found.differences())
    assert found.moments[-1].as_json()["other"] == {"placed": 10, "evicted": 0, "pending": 0}
