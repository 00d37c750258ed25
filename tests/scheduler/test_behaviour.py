"""The behaviour of each version of kube-scheduler."""

from __future__ import annotations

from podium.cluster.queue import queue as queues
from podium.cluster.queue.pools import Backoff
from podium.scheduler.state.behaviour import OF_CONFIGURATIONS


def test_the_backoff_is_that_of_the_configuration() -> None:
    behaviour = OF_CONFIGURATIONS.with_backoff(2.0, 30.0)

    assert behaviour.queue.backoff == Backoff(2.0, 30.0)
    assert behaviour.queue.longest_wait == queues.OF_CONFIGURATIONS.longest_wait
