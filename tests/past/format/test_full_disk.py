"""A history on a full disk: one warning, and recording goes on with a checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import node, pod
from past.judge.driver import Driver
from podium.host.history_rules import recorded_rules
from podium.library.profile_source import ProfileSource
from podium.past.format.reading import History, SegmentStart, Torn
from podium.past.format.records import Checkpoint, Decided, Put, Record
from podium.past.format.writing import HistoryWriter, Limits
from podium.past.replay.past_decisions import Derived, derive_all
from scheduler.fakes import PROFILES
from small_disk import fill, small_disk


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def whole_cluster(writer: HistoryWriter) -> Iterator[Record]:
    yield writer.put_record(9.0, "Node", node("n1"))
    yield Checkpoint(9.0, {}, [], {}, {}, [], [])  # type: ignore[arg-type]


def test_writing_goes_on_with_a_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with small_disk(tmp_path) as folder, caplog.at_level(logging.WARNING):
        writer = HistoryWriter(folder / "h", limits=Limits(batch_records=1), clock=clock)
        writer.change(1.0, "Node", None, node("n0"))
        filler = fill(folder)
        for number in range(500):
            writer.change(2.0, "Pod", None, pod(f"p{number}", labels={"a": str(number) * 50}))
        assert writer.failure == "no space left on device"
        assert not writer.wants_checkpoint, "not at once"
        for _ in range(3):
            clock.now += 100
            assert writer.wants_checkpoint
            writer.start_segment(whole_cluster(writer))
            assert writer.failure
        assert len(list((folder / "h").iterdir())) == 1, "no incomplete segment is left"

        filler.unlink()
        clock.now += 100
        writer.start_segment(whole_cluster(writer))
        assert writer.failure == ""
        writer.change(10.0, "Pod", None, pod("after"))
        writer.close()

        found = list(History(folder / "h").records())

    assert [record.message for record in caplog.records] == [
        f"nothing is recorded in {folder / 'h'} until it can be: no space left on device",
        f"recording in {folder / 'h'} goes on with a new segment",
    ]
    starts = [each for each in found if isinstance(each, SegmentStart)]
    assert [each.empty for each in starts] == [True, False]
    assert not any(each.damaged for each in found if isinstance(each, Torn))
    assert isinstance(found[-1], Put)
    assert b"after" in bytes(found[-1].object)


def test_two_programs_that_record_in_one_folder_keep_the_segments_of_each_other(
    tmp_path: Path,
) -> None:
    limits = Limits(batch_records=1)
    first = HistoryWriter(tmp_path / "h", limits=limits)
    second = HistoryWriter(tmp_path / "h", limits=limits)

    first.start_segment(whole_cluster(first))
    second.change(2.0, "Pod", None, pod("of-the-second"))
    first.change(2.0, "Pod", None, pod("of-the-first"))
    first.close()
    second.close()

    assert (first.failure, second.failure) == ("", "")
    names = [path.name for path in History(tmp_path / "h").segments]
    assert names == ["000001.history", "000002.history", "000003.history"]
    kept = [each for each in History(tmp_path / "h").records() if isinstance(each, Put)]
    assert b"of-the-second" in bytes(kept[0].object)
    assert b"of-the-first" in bytes(kept[-1].object)


def test_a_segment_that_somebody_else_deletes_is_no_failure(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h", limits=Limits(batch_records=1, total_bytes=0))
    (tmp_path / "h" / "000000.history").symlink_to(tmp_path / "gone")

    writer.start_segment(whole_cluster(writer))
    writer.change(10.0, "Pod", None, pod("after"))
    writer.close()

    assert writer.failure == ""
    records = History(tmp_path / "h" / "000002.history").records()
    assert any(isinstance(each, Put) and b"after" in bytes(each.object) for each in records)


def test_a_scheduler_decides_on_while_nothing_can_be_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profile, behaviour = PROFILES["v1.37"]
    with small_disk(tmp_path) as folder:
        driver = Driver(folder / "h", profile, behaviour)
        for number in range(20):
            driver.put(node(f"n{number}", cpu=4))
        driver.put(pod("before", requests={"cpu": 1}))
        driver.turn()
        driver.recorder.flush()
        filler = fill(folder)
        for number in range(60):
            driver.put(pod(f"p{number}", requests={"cpu": 1}, labels={"a": f"{number}-" * 20}))
            driver.turn()
            driver.recorder.flush()
        filler.unlink()
        driver.now += 600.0
        driver.recorder.flush()
        driver.put(pod("after", requests={"cpu": 1}))
        driver.turn()
        driver.recorder.close()

        history = History(folder / "h")
        decided = [each.pod for each in history.records() if isinstance(each, Decided)]
        again = list(derive_all(history, recorded_rules(ProfileSource())))

    placed = [decision for _, decision in driver.decisions if decision.node is not None]
    assert len(placed) == 62, "pods are placed all the time"
    assert "default/after" in decided
    assert len(decided) < 60, "some decisions are not recorded"
    assert all(each.difference is None for each in again if isinstance(each, Derived))
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 2
