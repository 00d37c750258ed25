"""Tasks of the client that must not end: their death is told, whoever owns them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.kube.own_tasks import OwnTasks
from podium.kube.recorder import EventRecorder
from podium.kube.reflector import Reflector
from podium.scheduler.scheduler import Scheduler
from podium.virtual_cluster.cluster import SimulatedCluster
from podium.virtual_cluster.in_process_api import InProcessApi
from scheduler.fakes import PROFILES, Events


async def _dies() -> None:
    raise ZeroDivisionError("a bug")


async def test_the_first_death_is_told() -> None:
    tasks = OwnTasks()
    tasks.start("one that lives", asyncio.sleep(3600))
    tasks.start("one that dies", _dies())
    with pytest.raises(ZeroDivisionError):
        await tasks.until_one_dies()
    await tasks.end()


async def test_a_task_that_returns_is_dead_too() -> None:
    tasks = OwnTasks()
    tasks.start("the work", asyncio.sleep(0))
    with pytest.raises(RuntimeError, match="the work ended by itself"):
        await tasks.until_one_dies()


async def test_a_cancelled_task_is_not_dead() -> None:
    tasks = OwnTasks()
    tasks.start("the work", asyncio.sleep(3600))
    watching = asyncio.ensure_future(tasks.until_one_dies())
    await asyncio.sleep(0)
    await tasks.end()
    await asyncio.sleep(0)
    assert not watching.done()
    watching.cancel()


def test_a_dead_informer_ends_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Any) -> None:
        raise ZeroDivisionError("a bug in a watch")

    monkeypatch.setattr(Reflector, "run", broken)

    async def run() -> None:
        scheduler = Scheduler(InProcessApi(), [PROFILES["v1.37"][0]], recorder=Events())
        async with asyncio.timeout(30):
            await scheduler.run()

    with pytest.raises(ZeroDivisionError, match="a bug in a watch"):
        asyncio.run(run())


def test_a_dead_event_writer_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Any, __: int) -> None:
        raise ZeroDivisionError("a bug in a writer")

    monkeypatch.setattr(EventRecorder, "_write_all", broken)
    with SimulatedCluster() as cluster:
        cluster.add_scheduler()
        with pytest.raises(ZeroDivisionError, match="a bug in a writer"):
            cluster.run_for(5)
