"""The event loop on virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from podium.virtual_cluster.event_loop import RealWorldError, StalledError, VirtualEventLoop


@pytest.fixture
def loop() -> Iterator[VirtualEventLoop]:
    made = VirtualEventLoop()
    yield made
    made.close()


def test_sleeping_for_a_year_takes_a_year_of_virtual_time(loop: VirtualEventLoop) -> None:
    year = 365 * 86_400.0
    loop.run_until_complete(asyncio.sleep(year))
    assert loop.time() == pytest.approx(year)


def test_timers_fire_in_the_order_of_their_times(loop: VirtualEventLoop) -> None:
    fired: list[tuple[str, float]] = []

    def fire(name: str) -> None:
        fired.append((name, round(loop.time(), 3)))

    for seconds, name in ((3, "c"), (1, "a"), (2, "b")):
        loop.call_later(seconds, fire, name)
    loop.run_for(2.5)
    assert fired == [("a", 1), ("b", 2)]
    loop.run_for(1)
    assert fired == [("a", 1), ("b", 2), ("c", 3)]


def test_timeouts_end_waits(loop: VirtualEventLoop) -> None:
    async def wait() -> None:
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        loop.run_until_complete(wait())
    assert loop.time() == pytest.approx(30)


def test_time_passes_even_if_nothing_ever_waits(loop: VirtualEventLoop) -> None:
    async def spin() -> int:
        turns = 0
        while loop.time() < 0.01:
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert 1_000 < loop.run_until_complete(spin()) < 100_000


def test_a_wait_that_nothing_can_end_is_an_error(loop: VirtualEventLoop) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    task = loop.create_task(wait())
    with pytest.raises(StalledError):
        loop.run_until_complete(task)
    task.cancel()
    loop.run_for(1)


def test_a_function_for_a_thread_is_called_in_this_one(loop: VirtualEventLoop) -> None:
    async def use_threads() -> int:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(threading.get_ident)

    assert loop.run_until_complete(use_threads()) == threading.get_ident()


@pytest.mark.parametrize(
    "act",
    [
        lambda: asyncio.open_connection("127.0.0.1", 1),
        lambda: asyncio.start_server(lambda _, __: None, "127.0.0.1", 0),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
    ],
    ids=["connecting", "listening", "starting a process", "resolving a name"],
)
def test_what_needs_the_real_world_is_refused(
    loop: VirtualEventLoop, act: Callable[[], Awaitable[object]]
) -> None:
    async def do() -> None:
        await act()

    with pytest.raises(RealWorldError, match="this program runs on virtual time"):
        loop.run_until_complete(do())
