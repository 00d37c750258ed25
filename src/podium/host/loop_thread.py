"""A thread with an event loop of its own, for work that must not wait for a decision.

Leader election runs in one, with its own connection. The lease is renewed while a decision takes
long, while bindings use every connection, and while the API server is slow to answer others.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from podium.kube.client import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from podium.kube.access import Access
    from podium.kube.api import KubeApi
    from podium.kube.lease import LeaderElector


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


class LeaseThread:
    """Runs a `LeaderElector`; to be used in an `async with`."""

    def __init__(
        self, load: Callable[[], Access], new_elector: Callable[[KubeApi], LeaderElector]
    ) -> None:
        """*load* makes an access that no other event loop uses."""
        self._client = ApiClient(load(), connections=1)
        self.elector = new_elector(self._client)
        self._thread = LoopThread("leader election")
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._thread)
        await self._thread.run(self._client.__aenter__())
        self._stack.push_async_callback(self._close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _close(self) -> None:
        await self._thread.run(self._client.__aexit__())

    async def run(self) -> None:
        """Elect until the lease is lost; when cancelled, return after the lease is released."""
        await self._thread.run(self.elector.run())

    async def hand_back(self) -> None:
        """Release a lease that was lost, if no other replica has it."""
        await self._thread.run(self.elector.hand_back())
