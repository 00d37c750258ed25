"""Events go an hour after they were last written, and earlier where there are very many."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from lab.controllers.managed_cluster import ManagedCluster
from podium.lab.controllers import event_expiry

MINUTE = 60.0


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "web", "namespace": "default"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about}


def names(lab: ManagedCluster) -> set[str]:
    return {each["metadata"]["name"] for each in lab.registry.list("Event", "default")}


def test_events_are_deleted_after_an_hour(lab: ManagedCluster) -> None:
    lab.create("Event", event("first"))
    lab.advance(30 * MINUTE)
    lab.settle()
    lab.create("Event", event("second"))
    assert names(lab) == {"first", "second"}

    lab.advance(31 * MINUTE)
    lab.settle()
    assert names(lab) == {"second"}

    lab.advance(31 * MINUTE)
    lab.settle()
    assert names(lab) == set()


def test_an_event_that_is_written_again_stays_for_another_hour(lab: ManagedCluster) -> None:
    lab.create("Event", event("often"))
    for count in range(1, 4):
        lab.advance(40 * MINUTE)
        lab.settle()
        lab.registry.patch(
            "Event",
            "often",
            {"count": count},
            content_type="application/merge-patch+json",
            namespace="default",
        )
    assert names(lab) == {"often"}

    lab.advance(61 * MINUTE)
    lab.settle()
    assert names(lab) == set()


def test_events_that_were_there_before_go_as_well(lab: ManagedCluster) -> None:
    lab.create("Event", event("old"))
    lab.restart()
    lab.advance(61 * MINUTE)
    lab.settle()

    assert names(lab) == set()


def test_the_oldest_of_very_many_events_go_at_once(
    lab: ManagedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_expiry, "MOST_EVENTS", 20)
    for number in range(20):
        lab.create("Event", event(f"e{number}"))
    lab.settle()
    assert len(names(lab)) == 20

    lab.create("Event", event("e20"))
    lab.settle()
    assert names(lab) == {f"e{number}" for number in range(1, 21)}


def test_requests_do_not_wait_for_all_old_events(lab: ManagedCluster) -> None:
    for number in range(3 * event_expiry.AT_ONCE):
        lab.create("Event", event(f"e{number}"))
    lab.advance(61 * MINUTE)

    left = [len(names(lab))]
    while lab.controllers.sync_ready(until=-1.0):
        left.append(len(names(lab)))
    assert max(before - after for before, after in pairwise(left)) == event_expiry.AT_ONCE
    assert left[-1] == 0


def test_events_that_come_faster_than_they_go_are_bounded(
    lab: ManagedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_expiry, "MOST_EVENTS", 100)
    monkeypatch.setattr(event_expiry, "AT_ONCE", 1)
    for number in range(200):
        lab.create("Event", event(f"e{number}"))
    while "e0" in names(lab):
        lab.controllers.sync_ready(until=-1.0)
    assert len(names(lab)) == 110
