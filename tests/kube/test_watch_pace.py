"""Watches that rest: what has arrived is read before the next decision, whatever the connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube.scripted import run_uvloop, scripted
from kube.test_watch_stream import HEAD, contexts
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.watch_pace import WatchPace
from podium.serving.access.serving_certificate import serving_certificate
from waiting import eventually

Run = Callable[[Coroutine[Any, Any, None]], None]
#: Longer than any of these tests.
FOR_EVER = 600.0


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_uvloop if request.param == "uvloop" else asyncio.run


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def secure(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Watching:
    """A watch, what it has handed on, and the connection of the server to send more."""

    def __init__(self, client: ApiClient, writer: asyncio.StreamWriter) -> None:
        self.client, self._writer = client, writer
        self.sent = b""
        self.taken = b""

    async def send(self, *pieces: bytes) -> None:
        """Send pieces, each as a chunk of its own; they have arrived when this returns.

        They are written together: of many small writes, the kernel keeps the last ones back.
        """
        self.sent += b"".join(pieces)
        self._writer.write(b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces))
        await self._writer.drain()
        for _ in range(3):
            await asyncio.sleep(0)

    async def rest(self) -> None:
        """Send pieces one shortly after the other, until the watch rests."""
        self.client.pace.let_rest()
        async with asyncio.timeout(60):
            while not self.client.pace._resting:
                await self.send(b"first\n")
                await asyncio.sleep(0.005)

    def take(self, piece: bytes) -> None:
        self.taken += piece


@asynccontextmanager
async def watching(
    *, secure: bool, rest_seconds: float = FOR_EVER, may_rest: bool = True
) -> AsyncIterator[Watching]:
    writers: list[asyncio.StreamWriter] = []

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        await writer.drain()
        writers.append(writer)
        await asyncio.sleep(FOR_EVER)

    with serving_certificate("", "") as made:
        server, trust = contexts(made) if secure else (None, None)
        access = lambda url: Access(url, tls=trust)  # noqa: E731
        async with scripted(reply, access, tls=server) as (client, _):
            client.pace = WatchPace(rest_seconds)
            opened = asyncio.Event()
            found: list[Watching] = []
            task = asyncio.create_task(
                client.watch(
                    "/w",
                    {"watch": "1"},
                    lambda piece: found[0].take(piece),  # noqa: PLW0108  it comes later
                    idle_seconds=20,
                    opened=opened.set,
                    may_rest=may_rest,
                )
            )
            await opened.wait()
            found.append(Watching(client, writers[0]))
            yield found[0]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert not client.pace._resting, "a watch that has ended still rests"


async def test_what_has_arrived_is_read_before_the_next_decision(run: Run, secure: bool) -> None:
    async with watching(secure=secure) as watch:
        for number in range(20):
            await watch.rest()
            before = watch.taken
            await watch.send(*(b"report %d\n" % each for each in range(number)))
            assert watch.taken == before, "it reads while it rests"
            await watch.client.pace.catch_up()
            assert watch.taken == watch.sent


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_lost_or_late_however_much_arrives(
    run: Run, secure: bool, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311

    async with watching(secure=secure) as watch:
        for _ in range(5):
            await watch.rest()
            sizes = [rng.choice([1, 100, 20_000, 70_000]) for _ in range(rng.randrange(4))]
            # The server may not be able to send all of it before the watch reads.
            sending = asyncio.create_task(watch.send(*(b"x" * size for size in sizes)))
            await asyncio.sleep(0.01)
            await watch.client.pace.catch_up()
            await sending
            await eventually(lambda: watch.taken == watch.sent)


async def test_a_record_of_which_a_part_has_arrived_is_read_when_the_rest_comes(run: Run) -> None:
    async with watching(secure=True, rest_seconds=0.02) as watch:
        watch.client.pace.let_rest()
        for number in range(40):
            await watch.send(b"y" * 16_000 * (number % 3 + 1))
        await eventually(lambda: watch.taken == watch.sent)


async def test_a_rest_ends_by_itself(run: Run, secure: bool) -> None:
    async with watching(secure=secure, rest_seconds=0.5) as watch:
        await watch.rest()
        await watch.send(b"late\n")
        assert watch.taken != watch.sent
        await eventually(lambda: watch.taken == watch.sent)


@pytest.mark.parametrize("case", ["nothing allows it", "it may not", "pieces come rarely"])
async def test_watches_that_do_not_rest(run: Run, secure: bool, case: str) -> None:
    rest_seconds = 0.0 if case == "pieces come rarely" else FOR_EVER
    may_rest = case != "it may not"
    async with watching(secure=secure, rest_seconds=rest_seconds, may_rest=may_rest) as watch:
        if case != "nothing allows it":
            watch.client.pace.let_rest()
        for _ in range(5):
            await watch.send(b"report\n")
            await eventually(lambda: watch.taken == watch.sent)
            assert not watch.client.pace._resting


async def test_catching_up_ends_the_permission_to_rest(run: Run, secure: bool) -> None:
    async with watching(secure=secure) as watch:
        await watch.rest()
        await watch.client.pace.catch_up()
        for _ in range(5):
            await watch.send(b"report\n")
            await eventually(lambda: watch.taken == watch.sent)
