"""Requests that go through an HTTP proxy, carried by a general HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import aiohttp
from yarl import URL

from podium.kube.access import Access
from podium.kube.api import JSON, hand_each
from podium.kube.connections import CONNECT_SECONDS, Answer, BrokenError, notice_death
from podium.kube.watch_pace import WatchPace
from podium.kube.watch_stream import WatchAnswer


class Proxied:
    """All requests to one API server, through a proxy."""

    def __init__(self, access: Access, proxy: str, user_agent: str) -> None:
        self._access, self._proxy = access, proxy
        tls = access.tls
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls),
            headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def exchange(
        self, method: str, target: str, body: bytes | None, content_type: str, *, seconds: float
    ) -> Answer:
        """Send one request; its answer, or `OSError` when none came."""
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        with _os_errors():
            response = await self._opened(method, target, body, content_type, limit=limit)
            async with response:
                return Answer(response.status, _headers_of(response), await response.read())

    async def watch(self, target: str, idle_seconds: float, accept: str = JSON) -> WatchAnswer:
        """Begin a watch; silence of *idle_seconds* ends it."""
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds
        )
        with _os_errors():
            response = await self._opened("GET", target, None, JSON, accept=accept, limit=limit)
        if response.connection is not None and response.connection.transport is not None:
            notice_death(response.connection.transport)
        pieces = _pieces(response)

        async def hand_on(
            take: Callable[[bytes], None],
            /,
            *,
            pace: WatchPace | None = None,  # noqa: ARG001  the HTTP client reads when it likes
        ) -> None:
            await hand_each(pieces, take)

        return WatchAnswer(response.status, _headers_of(response), pieces, hand_on, response.close)

    async def _opened(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        *,
        accept: str = JSON,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        access = self._access
        headers = await access.headers()  # several of one name, as those of groups, all count
        headers["Accept"] = accept
        if body is not None:
            headers["Content-Type"] = content_type
        return await self._session.request(
            method,
            URL(f"{access.url}{target}", encoded=True),
            data=body,
            headers=headers,
            timeout=limit,
            proxy=self._proxy,
            server_hostname=access.server_name or None,
            allow_redirects=False,
        )


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    with _os_errors():
        async for piece in response.content.iter_any():
            yield piece


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): text for name, text in response.headers.items()}


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise the errors of the HTTP client as those of connections without a proxy."""
    try:
        yield
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as error:
        what = "the connection was closed before the answer was complete"
        raise BrokenError(what, nothing_came=False) from error
    except aiohttp.ClientError as error:
        if isinstance(error, OSError):
            raise
        raise BrokenError(str(error) or type(error).__name__, nothing_came=False) from error
