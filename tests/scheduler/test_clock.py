"""Time as the scheduler measures and writes it."""

from __future__ import annotations

from builders import pod
from podium.cluster.queue.pools import Backoff
from podium.cluster.queue.queue import QueueOptions, SchedulingQueue
from podium.cluster.wakeups.wakeups import MoveRules
from podium.scheduler.state.clock import SteadyClock, written


def test_the_clock_does_not_jump_with_the_wall_clock() -> None:
    wall, steady = [1_000_000.0], [50.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    queue = SchedulingQueue(clock, MoveRules(), QueueOptions(backoff=Backoff(1, 10)))
    queue.add(pod("a"))
    turn = queue.pop()
    assert turn is not None
    queue.requeue(turn)
    assert clock() == 1_000_000.0

    wall[0] -= 3600  # the clock of the machine is set back
    steady[0] += 2.5

    assert clock() == 1_000_002.5
    assert queue.pop() is not None


def test_times_are_written_as_kubernetes_writes_them() -> None:
    assert written(1_700_000_000.9) == "2023-11-14T22:13:20Z"
