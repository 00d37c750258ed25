"""A replica that may not lead any more sends no write, however long one has waited."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube.scripted import answer, scripted
from podium.kube.lease import FencedApi, NotLeadingError
from waiting import eventually

PODS = "/api/v1/pods"


async def test_a_write_that_waits_for_a_connection_is_not_sent_once_the_lease_is_lost() -> None:
    leads, answered = True, asyncio.Event()

    async def reply(method: str, _: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if method == "POST":
            await answered.wait()
        writer.write(answer())

    async with scripted(reply, connections=1) as (client, script):
        fenced = FencedApi(client, lambda: leads)
        first = asyncio.ensure_future(fenced.request("POST", PODS, body=b"{}"))
        second = asyncio.ensure_future(fenced.request("POST", PODS, body=b"{}"))
        read = asyncio.ensure_future(fenced.request("GET", PODS))
        await eventually(lambda: script.asked)
        leads = False
        answered.set()
        assert await first == b"{}"
        with pytest.raises(NotLeadingError, match="does not hold the lease any more"):
            await second
        assert await read == b"{}"
        assert script.asked == [("POST", PODS), ("GET", PODS)]


async def test_a_write_is_not_repeated_after_a_pause_in_which_the_lease_was_lost() -> None:
    leads = True

    async def reply(*given: Any) -> None:
        given[-1].write(answer(status="429 Too Many Requests", Retry_After="5"))

    async def sleep(_: float) -> None:
        nonlocal leads
        leads = False

    async with scripted(reply, sleep=sleep) as (client, script):
        with pytest.raises(NotLeadingError):
            await FencedApi(client, lambda: leads).request("POST", PODS, body=b"{}")
        assert script.asked == [("POST", PODS)]
