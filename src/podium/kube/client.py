"""Requests to an API server over HTTP: credentials, proxies, timeouts and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self
from urllib.parse import urlencode
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from podium import __version__
from podium.kube.access import Access
from podium.kube.api import JSON, KubeApi
from podium.kube.asked_pause import with_asked_pause
from podium.kube.connections import Answer, Pool, notice_death
from podium.kube.errors import ApiError, UnreachableError, refusal, words

_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = 401


class ApiClient(KubeApi):
    """A client of one API server. To be used in an `async with`."""

    def __init__(
        self,
        access: Access,
        *,
        connections: int = 64,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Short requests share at most *connections*; each watch has a connection of its own."""
        self.access = access
        self._sleep = sleep
        self._agent = f"podium/{__version__}"
        self._proxy = access.proxy or _proxy_of(access)
        self._pool = Pool(access, self._agent, connections)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        tls = self.access.tls
        # Watches are few and long: each has a connection of its own, made with the credentials
        # of that moment. Through a proxy every request goes this way, and connections are kept.
        connector = aiohttp.TCPConnector(
            limit=0, ssl=True if tls is None else tls, force_close=not self._proxy
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._agent, "Accept": JSON, "Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
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
    ) -> bytes:
        """Send one request; the body of the answer.

        It is sent again once if renewed credentials may help, and once after the pause that the
        API server asks for with 429 or 503, if that is short.
        """
        target = _target(path, params)
        exchange = self._through_proxy if self._proxy else self._pool.exchange

        async def send(seconds: float) -> Answer:
            answer = await exchange(method, target, body, content_type, seconds=seconds)
            if answer.status == _UNAUTHORIZED and await self.access.rejected():
                answer = await exchange(method, target, body, content_type, seconds=seconds)
            return answer

        try:
            answer = await with_asked_pause(send, self._sleep, timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error
        if answer.status >= 300:
            raise self._refusal(method, target, answer)
        return answer.body

    async def _through_proxy(
        self, method: str, target: str, body: bytes | None, content_type: str, *, seconds: float
    ) -> Answer:
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
        response = await self._opened(method, target, body, content_type, limit=limit)
        async with response:
            return Answer(response.status, _headers_of(response), await response.read())

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch on a connection of its own; silence of *idle_seconds* ends it."""
        target = _target(path, params)
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=idle_seconds
        )
        try:
            response = await self._opened("GET", target, None, JSON, limit=limit)
            if response.status == _UNAUTHORIZED and await self.access.rejected():
                response.close()
                response = await self._opened("GET", target, None, JSON, limit=limit)
            async with response:
                if response.status >= 300:
                    headers, text = _headers_of(response), await response.read()
                    raise self._refusal("GET", target, Answer(response.status, headers, text))
                if response.connection is not None and response.connection.transport is not None:
                    notice_death(response.connection.transport)
                try:
                    yield response.content.iter_any()
                finally:
                    response.close()  # without reading the rest of it
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    async def _opened(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        *,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "use it in an async with"
        access = self.access
        headers = await access.headers()
        if body is not None:
            headers["Content-Type"] = content_type
        return await self._session.request(
            method,
            URL(f"{access.url}{target}", encoded=True),
            data=body,
            headers=headers,
            timeout=limit,
            proxy=self._proxy or None,
            server_hostname=access.server_name or None,
            allow_redirects=False,
        )

    def _refusal(self, method: str, target: str, answer: Answer) -> ApiError:
        asked = f"{method} {self.access.shown}{target}"
        return refusal(answer.status, answer.headers, answer.body, asked)

    def _unreachable(self, error: BaseException) -> UnreachableError:
        what = words(error)
        if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
            what = "the connection was closed before the answer was complete"
        return UnreachableError(f"{self.access.shown}: {what}")


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): text for name, text in response.headers.items()}


def _proxy_of(access: Access) -> str:
    """The proxy of the environment variables, such as $HTTPS_PROXY."""
    if proxy_bypass(access.host):
        return ""
    return getproxies().get("https" if access.secure else "http", "")
