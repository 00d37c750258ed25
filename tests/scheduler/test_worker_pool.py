"""Jobs of a worker pool: order, limit, failures, the end."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from podium.scheduler.placing.tasks import WorkerPool


async def test_jobs_start_in_order_and_within_the_limit() -> None:
    workers, begun, busy, most = WorkerPool(3), list[int](), 0, 0

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

    assert (begun, most) == (list(range(11)), 3)


async def test_a_job_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done, workers = [], WorkerPool(1)

    async def bad() -> None:
        raise ValueError("oh")

    async def good() -> None:
        done.append(1)

    workers.submit(bad)
    workers.submit(good)
    assert await workers.drain(5)

    assert done == [1]
    assert "a job failed" in caplog.text


async def test_cancelling_ends_running_jobs_and_drops_queued_ones() -> None:
    workers = WorkerPool(1)
    workers.submit(lambda: asyncio.sleep(3600))
    workers.submit(lambda: asyncio.sleep(3600))

    assert not await workers.drain(0.01)
    await workers.cancel()

    assert len(workers) == 0


async def test_submitting_does_not_wait_and_length_counts_what_is_left() -> None:
    workers, go = WorkerPool(2), asyncio.Event()

    async def job() -> None:
        await go.wait()

    for _ in range(5):
        workers.submit(job)
    assert len(workers) == 5
    await asyncio.sleep(0)
    assert len(workers) == 5
    go.set()
    assert await workers.drain(5)

    assert len(workers) == 0


async def test_a_pool_without_jobs_is_drained_at_once() -> None:
    assert await WorkerPool(1).drain(0)
