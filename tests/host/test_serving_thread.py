"""Requests that come in another thread and are carried out beside decisions."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from control_plane.harness import free_port
from podium.host.cluster_run import ClusterRun, RunOptions
from podium.host.loop_thread import LoopThread
from podium.host.scheduler_host import HostOptions
from podium.host.serving_thread import AcrossLoops
from podium.library.profile_source import ProfileSource
from podium.scheduler.state.clock import real_clocks
from podium.scheduler.state.options import SchedulerOptions
from podium.scheduler.telemetry.logs import WARNINGS_ONLY, Log
from podium.virtual_cluster.in_process_api import InProcessApi
from waiting import eventually

REQUESTS = 20


async def test_requests_begin_one_after_the_other_with_decisions_in_between() -> None:
    turns = 0
    begun: list[int] = []

    async def app(_: Any, __: Any, ___: Any) -> None:
        begun.append(turns)

    across: Any = AcrossLoops(app, asyncio.get_running_loop())

    async def ask() -> None:
        request = {"type": "http", "path": "/decisions"}
        await asyncio.gather(*(across(request, None, None) for _ in range(REQUESTS)))

    async with LoopThread("HTTP servers") as thread:
        asking = asyncio.ensure_future(thread.run(ask()))
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)

    assert len(set(begun)) == REQUESTS


async def test_a_scheduler_that_has_done_nothing_for_two_minutes_is_not_live() -> None:
    """The probe is answered in its thread while the event loop stands still, as it does here."""
    passed = [0.0]
    port = free_port()
    run = ClusterRun(
        InProcessApi(),
        ProfileSource(environment={}).choose(),
        Log(v=WARNINGS_ONLY, stream=io.StringIO()),
        RunOptions(
            host=HostOptions(scheduler=SchedulerOptions()),
            lease=None,
            bind_address="127.0.0.1",
            port=port,
        ),
        clocks=replace(real_clocks(), timer=lambda: passed[0]),
    )
    running = asyncio.ensure_future(run.run())

    def probed() -> int:
        with urlopen(f"http://127.0.0.1:{port}/livez", timeout=30) as answer:
            return int(answer.status)

    await eventually(lambda: run.host.scheduler and run.host.scheduler.synced.is_set())
    assert probed() == 200
    passed[0] += 119
    assert probed() == 200
    passed[0] += 2
    with pytest.raises(HTTPError) as refused:
        probed()
    assert refused.value.code == 500
    assert b"scheduling-loop failed: nothing was done for 121 s" in refused.value.read()

    await eventually(lambda: not run.host.health.alive["scheduling-loop"]())
    assert probed() == 200
    run.stop()
    assert await running == 0
