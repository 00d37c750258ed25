"""What is said again and again is counted, combined and limited, by client-go's rules."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.kube.events import (
    CountingLedger,
    EventWrite,
    Occurrence,
    Recent,
    Reference,
    SeriesLedger,
    microsecond,
)

POD = Reference("Pod", "team", "web-0", "u-1", "v1", "7")


def happened(message: str = "no room", about: Reference = POD, **parts: Any) -> Occurrence:
    what = Occurrence(about, "Warning", "FailedScheduling", message, "podium")
    return replace(what, **parts)


def written(write: EventWrite | None) -> EventWrite:
    assert write is not None
    return write


@given(now=st.floats(0, 4e9) | st.integers(0, 10**10).map(lambda each: each + 0.999_999_9))
def test_a_time_to_the_microsecond_is_that_of_datetime(now: float) -> None:
    fresh = datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds")
    assert microsecond(now) == f"{fresh.removesuffix('+00:00')}Z"


# core/v1 -----------------------------------------------------------------------------------------


def test_the_first_event_has_the_fields_of_kube_scheduler() -> None:
    write = written(CountingLedger().take(happened(), 1_700_000_000.5))
    assert write.patch is None
    assert write.event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web-0.17979cfe53f76500", "namespace": "team"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "team",
            "name": "web-0",
            "uid": "u-1",
            "apiVersion": "v1",
            "resourceVersion": "7",
        },
        "reason": "FailedScheduling",
        "message": "no room",
        "source": {"component": "podium"},
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "count": 1,
        "type": "Warning",
    }


def test_the_same_again_is_counted() -> None:
    ledger = CountingLedger()
    first = written(ledger.take(happened(), 0))
    # The pod has changed since; it is the same pod all the same.
    later = happened(about=POD._replace(resource_version="8"))
    again = written(ledger.take(later, 60))
    assert again.name == first.name
    assert again.patch == {
        "count": 2,
        "lastTimestamp": "1970-01-01T00:01:00Z",
        "message": "no room",
    }
    # If it is gone by now it is created with everything.
    assert again.event["firstTimestamp"] == "1970-01-01T00:00:00Z"
    assert again.event["count"] == 2


@pytest.mark.parametrize("ledger", [CountingLedger(), SeriesLedger()])
def test_events_of_one_moment_have_names_of_their_own(
    ledger: CountingLedger | SeriesLedger,
) -> None:
    writes = [written(ledger.take(happened(reason=f"r-{number}"), 5)) for number in range(5)]
    assert len({write.name for write in writes}) == 5


def test_ten_alike_are_combined() -> None:
    ledger = CountingLedger()
    writes = [written(ledger.take(happened(f"reason {number}"), number)) for number in range(12)]
    messages = [write.event["message"] for write in writes]
    assert messages[:9] == [f"reason {number}" for number in range(9)]
    assert messages[9:] == [
        f"(combined from similar events): reason {number}" for number in (9, 10, 11)
    ]
    assert [write.patch and write.patch["count"] for write in writes[9:]] == [None, 2, 3]
    assert len({write.name for write in writes[9:]}) == 1


def test_ten_minutes_of_silence_end_the_combining() -> None:
    ledger = CountingLedger()
    for number in range(12):
        ledger.take(happened(f"reason {number}"), number)
    write = written(ledger.take(happened("reason x"), 11 + 601))
    assert write.event["message"] == "reason x"


def test_other_reasons_and_objects_are_not_combined() -> None:
    ledger = CountingLedger()
    for number in range(9):
        ledger.take(happened(f"reason {number}"), 0)
    other = POD._replace(name="web-1", uid="u-2")
    for what in (happened("x", about=other), happened("x", reason="Preempted")):
        assert written(ledger.take(what, 0)).event["message"] == "x"


def test_25_at_once_and_then_one_in_five_minutes() -> None:
    ledger = CountingLedger()
    at_once = [ledger.take(happened(), 0) for _ in range(40)]
    assert [write is not None for write in at_once] == [True] * 25 + [False] * 15
    assert ledger.take(happened(), 299) is None
    write = written(ledger.take(happened(), 300))
    assert write.patch is not None
    assert write.patch["count"] == 42  # those that were not written count as well
    assert ledger.take(happened(), 301) is None
    assert ledger.take(happened(about=POD._replace(uid="other")), 301) is not None


_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 14), st.floats(0, 400)), min_size=1, max_size=150
)


@given(steps=_STEPS)
def test_however_often_it_happens(steps: list[tuple[int, int, float]]) -> None:
    """An object never has more events than it may; each event is made once and then counted."""
    ledger, now = CountingLedger(), 0.0
    written_at: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, int] = {}
    for pod, message, pause in steps:
        now += pause
        about = POD._replace(uid=f"u-{pod}", name=f"p-{pod}")
        write = ledger.take(happened(f"m-{message}", about), now)
        if write is None:
            continue
        written_at[about.uid].append(now)
        if write.patch is not None:
            # Made before, unless that one was not written.
            assert write.patch["count"] > counts.get(write.name, 0)
            assert write.event["count"] == write.patch["count"]
        else:
            assert write.name not in counts
            assert write.event["count"] == 1
        counts[write.name] = write.event["count"]
    for times in written_at.values():
        for index, last in enumerate(times):
            for first in times[: index + 1]:
                among = sum(first <= moment <= last for moment in times)
                assert among <= 25 + (last - first) / 300 + 1e-6


# events.k8s.io/v1 --------------------------------------------------------------------------------


def test_an_event_of_the_newer_api() -> None:
    what = happened(host="machine", action="Scheduling")
    write = written(SeriesLedger().take(what, 1_700_000_000.5))
    assert write.patch is None
    event = dict(write.event)
    assert event.pop("regarding") == POD.fields()
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-0.17979cfe53f76500", "namespace": "team"},
        "eventTime": "2023-11-14T22:13:20.500000Z",
        "reportingController": "podium",
        "reportingInstance": "podium-machine",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "note": "no room",
        "type": "Warning",
    }


def test_the_second_makes_a_series_and_the_rest_are_told_when_it_is_over() -> None:
    ledger = SeriesLedger()
    first = written(ledger.take(happened(), 0))
    second = written(ledger.take(happened("still no room"), 10))
    assert second.name == first.name
    assert second.patch == {
        "series": {"count": 2, "lastObservedTime": "1970-01-01T00:00:10.000000Z"}
    }
    assert [ledger.take(happened(), moment) for moment in (20, 30)] == [None, None]
    assert ledger.sweep(100) == []
    (over,) = ledger.sweep(30 + 361)
    assert over.patch == {"series": {"count": 4, "lastObservedTime": "1970-01-01T00:00:30.000000Z"}}
    assert ledger.sweep(10_000) == []
    assert written(ledger.take(happened(), 20_000)).patch is None


def test_a_long_series_is_told_of_every_half_hour() -> None:
    ledger, told = SeriesLedger(), []
    for minute in range(120):
        ledger.take(happened(), minute * 60)
        told += [(minute, write.patch) for write in ledger.sweep(minute * 60)]
    assert [minute for minute, _ in told] == [31, 61, 91]


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_long_notes_are_cut(letter: str) -> None:
    note = written(SeriesLedger().take(happened(letter * 3000), 0)).event["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith(" ...")
    assert note.startswith(letter * 500)


def test_what_is_remembered_is_bounded() -> None:
    recent: Recent[int, int] = Recent(3)
    for number in range(5):
        recent.put(number, number)
        recent.get(2)
    assert sorted(key for key, _ in recent.items()) == [2, 3, 4]
    assert recent.get(0) is None
    assert recent.get(2) == 2
