"""What a running scheduler does besides deciding, where releases differ."""

from __future__ import annotations

import pytest

from podium.generations.known import GENERATIONS
from podium.scheduler.state.behaviour import behaviour_of
from podium.scheduler.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    ("name", "nominates"),
    [("v1.13", False), ("v1.34", False), ("v1.35", True), ("v1.36", True), ("v1.37", True)],
)
def test_pods_are_nominated_before_they_are_bound(name: str, *, nominates: bool) -> None:
    assert behaviour_of(GENERATIONS[name]).nominates_before_binding is nominates


@pytest.mark.parametrize(("name", "counts"), [("v1.13", False), ("v1.36", False), ("v1.37", True)])
def test_the_nomination_of_a_gated_pod_counts(name: str, *, counts: bool) -> None:
    assert behaviour_of(GENERATIONS[name]).queue.nominates_gated is counts


@pytest.mark.parametrize("name", ["v1.36", "v1.37"])
def test_entities_are_counted_as_the_release_counts_them(name: str) -> None:
    counts = GENERATIONS[name].conduct.queues_entities
    metrics = Metrics(counts_entities=counts)
    metrics.queued("active", "PodAdd", 2)
    metrics.pending = lambda: {"backoff": 3}
    found = {family.name: family for family in metrics.collect()}

    assert ("scheduler_queued_entities" in found) is (name == "v1.37")
    if counts:
        [queued] = [
            each.value
            for each in found["scheduler_queued_entities"].samples
            if each.labels == {"queue": "backoff", "type": "pod"}
        ]
        assert queued == 3
        [came] = found["scheduler_queue_incoming_entities"].samples
        assert (came.labels, came.value) == (
            {"queue": "active", "event": "PodAdd", "type": "pod"},
            2,
        )
