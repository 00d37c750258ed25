"""Requests to an API server over HTTP: credentials, proxies, timeouts and errors."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol, Self
from urllib.parse import urlencode

from podium.kube.access import Access
from podium.kube.api import JSON, KubeApi, always
from podium.kube.connections import Answer, ConnectionPool, connected
from podium.kube.errors import (
    LONGEST_PAUSE_SECONDS,
    ApiError,
    UnreachableError,
    refusal,
    words,
)
from podium.kube.pauses import after_asked_pause
from podium.kube.proxies import proxy_of
from podium.kube.watch_stream import WatchConnection

logger = logging.getLogger(__name__)

_UNAUTHORIZED = 401
#: How long nothing more is logged about a server that asks for long pauses.
_SILENT_SECONDS = 60.0
#: How long `begin_reading` waits until its request is sent; it is sent in the background then.
_BEGIN_SECONDS = 1.0


class Exchange(Protocol):
    """Sends a request."""

    async def __call__(self, *, seconds: float) -> Answer:
        """Send it, and wait for its answer for *seconds* at most."""


class ApiClient(KubeApi):
    """A client of one API server. To be used in an `async with`."""

    def __init__(
        self,
        access: Access,
        *,
        connections: int = 64,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Short requests share at most *connections*; each watch has a connection of its own."""
        self.access = access
        self._sleep, self._clock = sleep, clock
        self._proxy = proxy_of(access)
        self._pool = ConnectionPool(access, connections, clock=clock, proxy=self._proxy)
        self._watches: set[WatchConnection] = set()
        #: Requests that were sent by `begin_reading`, by their handles, until `reading` takes them.
        self._begun: dict[str, asyncio.Task[WatchConnection]] = {}
        #: Until when no further line is logged about servers that ask for long pauses.
        self._silent_until = -math.inf

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.close()
        for begun in self._begun.values():
            begun.cancel()
        await asyncio.gather(*self._begun.values(), return_exceptions=True)
        self._begun.clear()
        for watch in [*self._watches]:
            watch.abort()
        await asyncio.sleep(0)  # connections that were aborted are closed in the loop's next turn

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,  # noqa: ASYNC109  the whole request, wherever it hangs
        before_send: Callable[[], None] = always,
    ) -> bytes:
        """Send one request; the body of the answer.

        It is sent again once if renewed credentials may help, and once after the pause that the
        API server asks for with 429 or 503, if that is short.
        """
        target = _target(path, params)
        asked = (method, target, body, content_type)
        exchange = self._pool.exchange
        try:
            answer = await exchange(*asked, seconds=timeout, before_send=before_send)
            if answer.status >= 300:
                again = partial(exchange, *asked, before_send=before_send)
                answer = await self._second_try(answer, again, timeout)
        except OSError as error:
            raise self._unreachable(error) from error
        if answer.status >= 300:
            raise self._refusal(method, target, answer)
        return answer.body

    async def _second_try(self, answer: Answer, exchange: Exchange, seconds: float) -> Answer:
        """Send a request again where that may help after its first answer."""

        async def send(seconds: float) -> Answer:
            return await self._known(await exchange(seconds=seconds), exchange, seconds)

        answer = await self._known(answer, exchange, seconds)
        return await after_asked_pause(answer, send, self._sleep, seconds)

    async def _known(self, answer: Answer, exchange: Exchange, seconds: float) -> Answer:
        """The answer to a request, which is sent again if renewed credentials may help."""
        if answer.status == _UNAUTHORIZED and await self.access.rejected():
            return await exchange(seconds=seconds)
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch on a connection of its own; silence of *idle_seconds* ends it."""
        async with self._opened(path, params, idle_seconds) as watch:
            yield watch.pieces()

    async def watch(
        self,
        path: str,
        params: Mapping[str, str],
        take: Callable[[bytes], None],
        *,
        idle_seconds: float,
        opened: Callable[[], None],
        may_rest: bool = False,
    ) -> None:
        """Open a watch, and hand its answer to *take* as the event loop receives it."""
        async with self._opened(path, params, idle_seconds) as watch:
            opened()
            await watch.hand_on(take, pace=self.pace if may_rest else None)

    @asynccontextmanager
    async def _opened(
        self,
        path: str,
        params: Mapping[str, str],
        idle_seconds: float,
        accept: str = JSON,
        begun: str = "",
    ) -> AsyncIterator[WatchConnection]:
        """The answer to the request of a watch, unless it is refused; it may have been sent."""
        target = _target(path, params)
        try:
            watch = await (self._begun.pop(begun, None) or self._sent(target, idle_seconds, accept))
            try:
                status = await watch.status
                if status == _UNAUTHORIZED and await self.access.rejected():
                    self._close(watch)
                    watch = await self._sent(target, idle_seconds, accept)
                    status = await watch.status
                if status >= 300:
                    text = b"".join([piece async for piece in watch.pieces()])
                    raise self._refusal("GET", target, Answer(status, watch.headers, text))
                yield watch
            finally:
                self._close(watch)  # without reading the rest of it
        except OSError as error:
            raise self._unreachable(error) from error

    def _close(self, watch: WatchConnection) -> None:
        self._watches.discard(watch)
        watch.abort()

    @asynccontextmanager
    async def reading(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        seconds: float,
        accept: str = JSON,
        begun: str = "",
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read on a connection of its own what may be long, as it comes."""
        async with self._opened(path, params, seconds, accept, begun) as answer:
            yield answer.pieces()

    async def begin_reading(
        self,
        handle: str,
        path: str,
        params: Mapping[str, str],
        *,
        seconds: float,
        accept: str = JSON,
    ) -> None:
        """Send a request whose answer `reading` takes over later, given the same *handle*.

        The API server prepares its answer meanwhile. An error is left to `reading`.
        """
        begun = asyncio.create_task(self._sent(_target(path, params), seconds, accept))
        self._begun[handle] = begun
        await asyncio.wait([begun], timeout=_BEGIN_SECONDS)

    async def _sent(self, target: str, idle_seconds: float, accept: str) -> WatchConnection:
        """A connection of its own with the request, with the credentials of this moment."""
        request = await self._pool.written("GET", target, accept=accept)
        made = partial(WatchConnection, self._clock)
        connection = await connected(self.access, made, proxy=self._proxy)
        connection.send(request, idle_seconds)
        self._watches.add(connection)
        return connection

    def _refusal(self, method: str, target: str, answer: Answer) -> ApiError:
        asked = f"{method} {self.access.shown}{target}"
        error = refusal(answer.status, answer.headers, answer.body, asked)
        self._note_pause(error, asked)
        return error

    def _note_pause(self, error: ApiError, asked: str) -> None:
        """Log that a server asks for a longer pause than it gets, once in a while."""
        if error.asked_pause is None or error.asked_pause <= LONGEST_PAUSE_SECONDS:
            return
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + _SILENT_SECONDS
            logger.warning(
                "%s: answered with code %d and Retry-After %.0f s; it is asked again after %.0f s",
                asked,
                error.status,
                error.asked_pause,
                LONGEST_PAUSE_SECONDS,
            )

    def _unreachable(self, error: OSError) -> UnreachableError:
        return UnreachableError(f"{self.access.shown}: {words(error)}")


def _target(path: str, params: Mapping[str, str] | None) -> str:
    """The path and the query of a request."""
    return f"{path}?{urlencode(params)}" if params else path
