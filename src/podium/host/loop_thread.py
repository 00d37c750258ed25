"""A thread with an event loop of its own, for work that must not wait for a decision."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_Result = TypeVar("_Result")

#: How long the thread may take to end after its work has.
_END_SECONDS = 10.0


class LoopThread:
    """Runs coroutines in a thread; to be used in an `async with`."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _END_SECONDS)

    async def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run *work* in the thread; its result. When cancelled, return after *work* has ended."""
        here, ended = asyncio.get_running_loop(), asyncio.Event()

        async def whole() -> _Result:
            try:
                return await work
            finally:
                here.call_soon_threadsafe(ended.set)

        future = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            await ended.wait()
            raise


def called_here(act: Callable[..., None]) -> Callable[..., None]:
    """A function for other threads: *act* is called soon, on the event loop that runs now."""
    loop = asyncio.get_running_loop()

    def call(*arguments: object) -> None:
        with suppress(RuntimeError):  # the program has ended meanwhile
            loop.call_soon_threadsafe(act, *arguments)

    return call
