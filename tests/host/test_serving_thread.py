"""Requests that come in another thread and are carried out beside decisions."""

from __future__ import annotations

import asyncio
from typing import Any

from podium.host.loop_thread import LoopThread
from podium.host.serving_thread import AcrossLoops

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
