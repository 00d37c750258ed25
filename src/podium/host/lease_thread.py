"""Leader election in a thread of its own, on a connection of its own.

The lease is renewed while a decision takes long, while bindings use every connection, and while the
API server is slow to answer other requests.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from podium.host.loop_thread import LoopThread
from podium.kube.client import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.kube.access import Access
    from podium.kube.api import KubeApi
    from podium.kube.lease import LeaderElector


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
