"""How a reflector waits, and how it reads a stream."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.harness import ADMIN, ControlPlane
from control_plane.proxy import Proxy
from kube.reflecting import CONFIG_MAPS, Known, connected, following, until
from kube.scripted import answer, scripted
from podium.kube import reflector
from podium.kube.api import KubeApi
from podium.kube.errors import ApiError
from podium.kube.reflector import Reflector
from podium.objects.kinds.meta import Object


async def refuse(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b'{"message": "not now"}', "503 Service Unavailable"))


def pauses(seed: int, count: int) -> list[float]:
    """How long a reflector waits for a server that never helps."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == count:
            raise asyncio.CancelledError

    async def run() -> None:
        async with scripted(refuse) as (client, _):
            decoder, rng = msgspec.json.Decoder(Object), random.Random(seed)  # noqa: S311
            following = Reflector(client, "/x", decoder, Known(), rng=rng, sleep=sleep)
            with pytest.raises(asyncio.CancelledError):
                await following.run()

    asyncio.run(run())
    return waited


def test_pauses_grow_and_differ_between_replicas() -> None:
    one, other = pauses(1, 10), pauses(2, 10)
    for number, seconds in enumerate(one):
        steady = min(0.25 * 2**number, 10)
        assert 0.5 * steady <= seconds <= 1.5 * steady
    assert all(a != b for a, b in zip(one, other, strict=True))


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"")), max_size=10),
    cuts=st.lists(st.integers(0, 200), max_size=20),
)
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})

    async def pieces() -> AsyncIterator[bytes]:
        for start, end in pairwise(places):
            yield whole[start:end]

    async def read() -> list[bytes]:
        return [line async for line in reflector._lines(pieces())]

    assert asyncio.run(read()) == [line for line in lines if line]


def test_a_deleted_object_that_cannot_be_decoded_is_found_by_a_new_list() -> None:
    lists = [
        b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}',
        b'{"metadata":{"resourceVersion":"3"},"items":[]}',
    ]
    deleted = (
        b'{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"2","labels":7}}}\n'
    )

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if "watch=1" not in target:
            writer.write(answer(lists.pop(0)))
        elif lists:
            writer.write(answer(deleted))
        else:
            await asyncio.sleep(60)

    async def run() -> None:
        async with scripted(reply) as (client, _), following(client, "/x", Object) as (known, _):
            await until(lambda: known.replaced == 2, seconds=5)
            assert known.objects == {}

    asyncio.run(run())


def test_a_watch_without_an_answer_is_opened_again(control_plane: ControlPlane) -> None:
    async def run() -> None:
        with Proxy(control_plane) as proxy:
            silent = proxy.swallow("GET", "watch=", times=1)
            options: Any = {"watch_seconds": 1, "grace_seconds": 0.1}
            async with (
                connected(control_plane.kubeconfig(ADMIN, url=proxy.url)) as client,
                following(client, CONFIG_MAPS, Object, **options) as (known, _),
            ):
                await until(lambda: silent.hits)
                await client.create(CONFIG_MAPS, {"metadata": {"name": "meanwhile"}})
                await until(lambda: "meanwhile" in known.objects)
                assert known.replaced == 1
                assert any("no answer in time" in line for line in known.told)
                await client.request("DELETE", CONFIG_MAPS)

    asyncio.run(run())


class Expiring(KubeApi):
    """Refuses the first watches at once; later ones live for a minute, then their time is over."""

    def __init__(self, refused: int) -> None:
        self.refused, self.now = refused, 0.0

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        return b'{"metadata": {"resourceVersion": "1"}, "items": []}'

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.refused:
            self.refused -= 1
            raise ApiError("not now", status=500)

        async def expire() -> AsyncIterator[bytes]:
            self.now += 60.0
            yield b'{"type": "ERROR", "object": {"code": 410}}\n'

        yield expire()


def test_a_watch_that_lived_long_ends_the_growth_of_pauses() -> None:
    api = Expiring(refused=6)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 8:
            raise asyncio.CancelledError

    reading = Reflector(
        api,
        "/x",
        msgspec.json.Decoder(Object),
        Known(),
        rng=random.Random(1),  # noqa: S311
        sleep=sleep,
        clock=lambda: api.now,
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reading.run())

    assert waited[5] >= 4.0
    assert max(waited[6:]) < 0.5


def test_a_failure_is_told_once_until_the_watch_works_again() -> None:
    """Six watches are refused, one lives for a minute, and three more are refused."""
    api, pauses = Expiring(refused=6), 0
    told: list[str] = []

    async def sleep(_: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 7:
            api.refused = 3
        elif pauses == 11:
            raise asyncio.CancelledError

    reading = Reflector(
        api,
        "/x",
        msgspec.json.Decoder(Object),
        Known(),
        warn=told.append,
        sleep=sleep,
        clock=lambda: api.now,
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reading.run())

    assert told == ["/x: not now; trying again"] * 2


class Lists(KubeApi):
    """Lists one object, whose resourceVersion never changes, and watches that last."""

    def __init__(self) -> None:
        self.lists = 0
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.lists += 1
        item = b'{"metadata": {"name": "a", "resourceVersion": "1"}}'
        return b'{"metadata": {"resourceVersion": "1"}, "items": [%s]}' % item

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await self.events.get()

        yield pieces()


def test_a_new_list_can_be_asked_for() -> None:
    """It begins at the next event, which is not lost: the list has it."""
    api, known = Lists(), Known()
    told: list[str] = []
    bookmark = b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}\n'

    async def sleep(_: float) -> None:
        """Pass the pauses over."""

    async def run() -> None:
        reading = Reflector(
            api, "/x", msgspec.json.Decoder(Object), known, warn=told.append, sleep=sleep
        )
        task = asyncio.create_task(reading.run())
        await until(lambda: known.replaced == 1)
        await api.events.put(bookmark)
        await until(lambda: reading.version == "2")
        assert api.lists == 1

        reading.list_again()
        await api.events.put(bookmark)
        await until(lambda: known.replaced == 2)

        assert (api.lists, reading.version) == (2, "1")
        await api.events.put(bookmark)
        await until(lambda: reading.version == "2")
        assert api.lists == 2, "once is enough"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert told == [], "the handler that failed has told it"
