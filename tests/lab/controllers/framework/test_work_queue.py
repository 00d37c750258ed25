"""Keys are synced once, in order, when they are due; failures and slow syncs delay them."""

from __future__ import annotations

import pytest

from lab.controllers.virtual_clock import VirtualClock
from podium.lab.controllers.framework.work_queue import FAILING_RETRY_SECONDS, WorkQueue


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue:
    return WorkQueue(clock.now)


def popped(queue: WorkQueue) -> list[object]:
    found = []
    while (key := queue.pop()) is not None:
        found.append(key)
    return found


def test_keys_come_in_the_order_they_were_added_and_once(queue: WorkQueue) -> None:
    for key in "bab":
        queue.add(key)

    assert len(queue) == 2
    assert popped(queue) == ["b", "a"]


def test_a_delayed_key_is_ready_when_it_is_due(queue: WorkQueue, clock: VirtualClock) -> None:
    queue.add_after("later", 10)
    queue.add_after("soon", 5)

    assert queue.next_due() == clock.now() + 5
    assert popped(queue) == []
    clock.advance(5)
    assert popped(queue) == ["soon"]
    clock.advance(5)
    assert popped(queue) == ["later"]
    assert queue.next_due() is None


def test_the_earlier_of_two_times_counts(queue: WorkQueue, clock: VirtualClock) -> None:
    queue.add_after("key", 10)
    queue.add_after("key", 5)
    queue.add_after("key", 20)

    clock.advance(5)
    assert popped(queue) == ["key"]
    clock.advance(60)
    assert popped(queue) == []


def test_a_failing_key_waits_twice_as_long_each_time_up_to_a_limit(queue: WorkQueue) -> None:
    waits = [queue.retry("key") for _ in range(20)]

    assert waits[:3] == [0.005, 0.01, 0.02]
    assert waits[-1] == 30
    queue.done("key", 0)
    assert queue.retry("key") == 0.005


def test_a_key_whose_sync_was_slow_pauses_nine_times_as_long(
    queue: WorkQueue, clock: VirtualClock
) -> None:
    queue.done("slow", 1.0)
    queue.done("quick", 0.001)
    queue.add("slow")
    queue.add("quick")

    assert popped(queue) == ["quick"]
    clock.advance(9)
    assert popped(queue) == ["slow"]
    queue.add("slow")
    assert popped(queue) == ["slow"]


def test_a_waiting_task_is_woken_when_work_is_due_sooner(queue: WorkQueue) -> None:
    woken: list[str] = []
    queue.on_wake = lambda: woken.append("now")
    queue.add_after("later", 10)
    queue.add_after("much later", 20)
    queue.add_after("sooner", 5)
    queue.add("ready")
    queue.add("ready, too")

    assert len(woken) == 3


def test_a_queue_is_idle_while_all_keys_wait_for_clocks() -> None:
    time = [0.0]
    queue = WorkQueue(lambda: time[0])

    queue.add_after("tick", 60, clock=True)
    assert queue.is_idle
    queue.add_after("tick", 90)
    assert not queue.is_idle
    time[0] = 61.0
    assert queue.pop() == "tick"
    assert queue.is_idle
    queue.add_after("work", 5)
    queue.leave_to_clocks()
    assert queue.is_idle
    time[0] = 70.0
    assert queue.pop() == "work"


def test_a_key_that_keeps_failing_waits_for_a_clock() -> None:
    time = [0.0]
    queue = WorkQueue(lambda: time[0])

    while queue.retry("bad") <= FAILING_RETRY_SECONDS:
        assert not queue.is_idle
        time[0] += 10.0
        assert queue.pop() == "bad"

    assert queue.is_idle
    time[0] += 10.0
    assert queue.pop() == "bad"


def test_pauses_of_keys_that_never_come_again_are_forgotten(
    queue: WorkQueue, clock: VirtualClock
) -> None:
    for number in range(10_000):
        queue.done(number, took=1.0)
        clock.advance(1.0)

    assert len(queue._paused_until) < 200
