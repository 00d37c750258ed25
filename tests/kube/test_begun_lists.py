"""Lists that are asked for before anything else is done, and taken over by the informers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kube.scripted import answer, run_uvloop, scripted
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.discovery import Served
from podium.kube.errors import ApiError, UnreachableError
from podium.scheduler.state.begun_lists import begin_lists
from podium.scheduler.state.informers import Informers
from podium.scheduler.state.object_index import ObjectIndex
from waiting import eventually

Run = Callable[[Coroutine[Any, Any, None]], None]
SERVED = Served(frozenset({"v1"}), {"Pod": ("v1", "pods"), "Node": ("v1", "nodes")})
LIST = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"one","uid":"1"}}]}'


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_uvloop if request.param == "uvloop" else asyncio.run


class Indexes:
    """The indexes of two kinds, which nothing listens to."""

    def __init__(self) -> None:
        self.of: dict[str, ObjectIndex[Any]] = {}

    def index(self, kind: str) -> ObjectIndex[Any]:
        return self.of.setdefault(kind, ObjectIndex(lambda _, __: None))


async def lists(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer lists; a watch stays silent."""
    if "watch=1" in target:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    else:
        writer.write(answer(LIST))
    await writer.drain()


async def test_informers_take_over_the_lists_that_were_asked_for(run: Run) -> None:
    async with scripted(lists) as (client, script):
        await begin_lists(client)
        assert len(script.asked) == 2, "they are not asked for at once"
        state = Indexes()
        informers = Informers(client, state, SERVED)
        await informers.start(["Pod", "Node"])
        assert [*state.of["Pod"].known] == [*state.of["Node"].known] == ["default/one"]
        asked = [target for _, target in script.asked if "watch=1" not in target]
        assert len(asked) == 2, "a list was asked for twice"
        await informers.stop()


async def test_a_list_is_taken_over_once(run: Run) -> None:
    async with scripted(lists) as (client, script):
        await client.begin_reading("X", "/x", {"a": "b"}, seconds=20)
        for number in (1, 2):
            async with client.reading("/x", {"a": "b"}, seconds=20, begun="X") as pieces:
                assert b"".join([piece async for piece in pieces]) == LIST
            assert len(script.asked) == number


async def test_a_list_is_taken_over_by_its_handle_alone(run: Run) -> None:
    async with scripted(lists) as (client, script):
        await client.begin_reading("X", "/x", {"a": "b"}, seconds=20)
        async with client.reading("/x", {"a": "b"}, seconds=20):
            assert len(script.asked) == 2, "a request without the handle took it"
        async with client.reading("/x", {"b": "a"}, seconds=20, begun="X"):
            assert len(script.asked) == 2, "the handle was not enough"


async def test_an_answer_that_refuses_is_told_when_the_list_is_read(run: Run) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b'{"message":"no","code":403}', "403 Forbidden"))
        await writer.drain()

    async with scripted(reply) as (client, _):
        await client.begin_reading("X", "/x", {"a": "b"}, seconds=20)
        with pytest.raises(ApiError, match="no"):
            async with client.reading("/x", {"a": "b"}, seconds=20, begun="X"):
                pytest.fail("it was not refused")


async def test_a_server_that_is_not_there_is_told_when_the_list_is_read(run: Run) -> None:
    async with ApiClient(Access("http://127.0.0.1:1")) as client:
        await client.begin_reading("X", "/x", {"a": "b"}, seconds=20)
        with pytest.raises(UnreachableError):
            async with client.reading("/x", {"a": "b"}, seconds=20, begun="X"):
                pytest.fail("there is no server")


async def test_a_list_that_is_never_read_is_closed_with_the_client(run: Run) -> None:
    async with scripted(lists) as (client, script):
        await client.begin_reading("X", "/x", {"a": "b"}, seconds=20)
        await client.__aexit__()
        await eventually(lambda: not script.open)
