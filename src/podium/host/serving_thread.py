"""HTTP servers in a thread of their own, in front of an application on another event loop.

Probes are answered in the thread, also while a decision takes long. All other requests are carried
out on the event loop of the scheduler, whose state they read. They begin one after the other, with
decisions in between, however many there are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from podium.serving.access.delegated_access import OPEN_PATHS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class AcrossLoops:
    """An application that answers probes where it is called, and all else on the loop *there*."""

    def __init__(self, app: ASGIApp, there: asyncio.AbstractEventLoop) -> None:
        self._app, self._there = app, there
        self._beginning = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = str(scope.get("path", ""))
        if any(path == each or path.startswith(f"{each}/") for each in OPEN_PATHS):
            await self._app(scope, receive, send)
            return
        here = asyncio.get_running_loop()

        async def received() -> Message:
            message: Message = await _on(here, receive())
            return message

        async def sent(message: Message) -> None:
            await _on(here, send(message))

        await _on(self._there, self._in_turn(scope, received, sent))

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request out on the loop of the application, which no other one begins with it."""
        async with self._beginning:
            await asyncio.sleep(0)
        await self._app(scope, receive, send)


async def _on(loop: asyncio.AbstractEventLoop, work: Any) -> Any:
    """Run a coroutine on another event loop; its result."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
