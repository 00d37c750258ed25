"""The small parts of the scheduler: clock, workers, what is written into pods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from builders import pod
from podium.cluster.queue import queue as queues
from podium.cluster.queue.backoff import Backoff
from podium.cluster.queue.queue import QueueOptions, SchedulingQueue
from podium.cluster.wakeups.wakeups import MoveRules
from podium.daemon.behaviour import V1_36
from podium.daemon.clock import SteadyClock, written
from podium.daemon.pod_status import Outcome, PodStatusWriter
from podium.daemon.worker_pool import WorkerPool
from podium.objects.kinds.pod import PodCondition


def test_the_clock_does_not_jump_with_the_wall_clock() -> None:
    wall, steady = [1_000_000.0], [50.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    queue = SchedulingQueue(clock, MoveRules(), QueueOptions(backoff=Backoff(1, 10)))
    queue.add(pod("a"))
    turn = queue.pop()
    assert turn is not None
    queue.requeue(turn)
    assert clock() == 1_000_000.0

    wall[0] -= 3600  # somebody sets the clock back
    steady[0] += 2.5

    assert clock() == 1_000_002.5
    assert queue.pop() is not None


def test_times_are_written_as_kubernetes_writes_them() -> None:
    assert written(1_700_000_000.9) == "2023-11-14T22:13:20Z"


def test_a_crew_works_within_its_number_and_in_order() -> None:
    async def run() -> tuple[list[int], int]:
        workers, begun, busy, most = WorkerPool(3), [], 0, 0

        async def job(number: int) -> None:
            nonlocal busy, most
            begun.append(number)
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0)
            busy -= 1

        for number in range(10):
            workers.submit(partial(job, number))
        assert await workers.drain(5)
        workers.submit(lambda: job(10))
        assert await workers.drain(5)
        return begun, most

    begun, most = asyncio.run(run())

    assert begun == list(range(11))
    assert most == 3


def test_a_job_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done = []

    async def run() -> None:
        workers = WorkerPool(1)

        async def bad() -> None:
            raise ValueError("oh")

        async def good() -> None:
            done.append(1)

        workers.submit(bad)
        workers.submit(good)
        assert await workers.drain(5)

    asyncio.run(run())

    assert done == [1]
    assert "a job failed" in caplog.text


def test_a_crew_is_dismissed_with_work_left() -> None:
    async def run() -> bool:
        workers = WorkerPool(1)
        workers.submit(lambda: asyncio.sleep(3600))
        workers.submit(lambda: asyncio.sleep(3600))
        finished = await workers.drain(0.01)
        await workers.cancel()
        assert len(workers) == 0
        return finished

    assert not asyncio.run(run())


class Kept:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.patches: list[Mapping[str, Any]] = []

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        assert (namespace, name) == ("default", "a")
        self.patches.append(patch["status"])


def test_an_attempt_that_ends_as_the_one_before_writes_nothing() -> None:
    client = Kept()
    writer = PodStatusWriter(client, writes_probe_time=False, now=lambda: 0.0)
    outcome = Outcome("Unschedulable", "no room", "")

    async def run() -> None:
        waiting = pod("a", uid="1")
        await writer.write(waiting, outcome)
        waiting = writer.with_condition(waiting, outcome)
        await writer.write(waiting, outcome)
        await writer.write(waiting, Outcome("Unschedulable", "less room", "n1"))

    asyncio.run(run())

    first, second = client.patches
    [condition] = first["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastProbeTime": None,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    assert "nominatedNodeName" not in first
    assert second["nominatedNodeName"] == "n1"


def test_every_attempt_of_the_older_generation_writes_its_time() -> None:
    client, now = Kept(), [0.0]
    writer = PodStatusWriter(client, writes_probe_time=True, now=lambda: now[0])
    outcome = Outcome("Unschedulable", "no room")

    async def run() -> None:
        waiting = pod("a", uid="1")
        await writer.write(waiting, outcome)
        waiting = writer.with_condition(waiting, outcome)
        now[0] = 60.0
        await writer.write(waiting, outcome)

    asyncio.run(run())

    last = client.patches[-1]["conditions"][0]
    assert last["lastProbeTime"] == "1970-01-01T00:01:00Z"
    assert last["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_a_promise_is_taken_back_with_null() -> None:
    client = Kept()
    writer = PodStatusWriter(client, writes_probe_time=False, now=lambda: 0.0)
    waiting = pod("a", uid="1", nominated="n1")

    asyncio.run(writer.nominate(waiting, ""))
    asyncio.run(writer.nominate(waiting, "n1"))

    assert client.patches == [{"nominatedNodeName": None}]


def test_conditions_of_others_stay() -> None:
    ready = PodCondition(type="Ready", status="False")
    waiting = pod("a", uid="1")
    waiting = replace(waiting, status=replace(waiting.status, conditions=[ready]))
    writer = PodStatusWriter(Kept(), writes_probe_time=False, now=lambda: 0.0)

    noted = writer.with_condition(waiting, Outcome("Unschedulable", "no room"))

    assert [each.type for each in noted.status.conditions or ()] == ["Ready", "PodScheduled"]


# What is watched ------------------------------------------------------------------------------


def test_rests_are_those_of_the_configuration() -> None:
    behaviour = V1_36.with_backoff(2.0, 30.0)

    assert behaviour.queue.backoff == Backoff(2.0, 30.0)
    assert behaviour.queue.longest_wait == queues.V1_36.longest_wait
