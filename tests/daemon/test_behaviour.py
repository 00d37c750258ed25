"""The behaviour of each version of kube-scheduler."""

from __future__ import annotations

from podium.cluster.queue import queue as queues
from podium.cluster.queue.backoff import Backoff
from podium.daemon.behaviour import V1_36


def test_the_backoff_is_that_of_the_configuration() -> None:
    behaviour = V1_36.with_backoff(2.0, 30.0)

    assert behaviour.queue.backoff == Backoff(2.0, 30.0)
    assert behaviour.queue.longest_wait == queues.V1_36.longest_wait
