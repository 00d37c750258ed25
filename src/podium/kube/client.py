"""Requests to an API server: who asks, what comes back, and what it means when nothing does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote, urlencode
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from podium import __version__
from podium.kube.access import Access
from podium.kube.connections import Answer, Pool, notice_death
from podium.kube.errors import ApiError, UnreachableError, refusal, words

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = 401


class ApiClient:
    """Talks to one API server. To be used in an `async with`."""

    def __init__(self, access: Access, *, connections: int = 64) -> None:
        """Short requests share at most so many *connections*; each watch has one of its own."""
        self.access = access
        self._agent = f"podium/{__version__}"
        self._proxy = access.proxy or _proxy_of(access)
        self._pool = Pool(access, self._agent, connections)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        tls = self.access.tls
        # Watches are few and long: each has a connection of its own, made with the credentials
        # of the day. Through a proxy everything goes this way, and connections are kept.
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

    # Any request ----------------------------------------------------------------------------------

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
        """What the API server answers; a refusal, or no answer, is an `ApiError`."""
        target = _target(path, params)
        send = self._through_proxy if self._proxy else self._pool.exchange
        try:
            answer = await send(method, target, body, content_type, seconds=timeout)
            if answer.status == _UNAUTHORIZED and await self.access.rejected():
                answer = await send(method, target, body, content_type, seconds=timeout)
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
        """An answer that goes on and on, in pieces; silence of *idle_seconds* ends it."""
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
                    response.close()  # whatever is left of it is not waited for
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
        headers = dict(await access.headers())
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

    # Objects as plain values ----------------------------------------------------------------------

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Read something."""
        return msgspec.json.decode(await self.request("GET", path, params=params))

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Create an object in the collection at *path*."""
        return msgspec.json.decode(await self.request("POST", path, body=msgspec.json.encode(obj)))

    async def put(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Replace an object; its resourceVersion, where it has one, must still hold."""
        return msgspec.json.decode(await self.request("PUT", path, body=msgspec.json.encode(obj)))

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        """Change part of an object."""
        body = msgspec.json.encode(patch)
        return msgspec.json.decode(
            await self.request("PATCH", path, body=body, content_type=content_type)
        )

    async def delete(self, path: str, options: Mapping[str, Any] | None = None) -> Any:
        """Delete something."""
        body = msgspec.json.encode(options) if options else None
        return msgspec.json.decode(await self.request("DELETE", path, body=body))

    # What a scheduler does ------------------------------------------------------------------------

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> None:
        """Give a pod its node; with a *uid*, only if it still is that pod."""
        metadata = {"name": name, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": node},
        }
        path = f"{pod_path(namespace, name)}/binding"
        await self.request("POST", path, body=msgspec.json.encode(binding), timeout=timeout)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Evict a pod, with the grace period it asks for."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        body = msgspec.json.encode(options)
        await self.request("DELETE", pod_path(namespace, name), body=body)

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change a pod's status: lists such as its conditions are merged by their keys."""
        await self.request(
            "PATCH",
            f"{pod_path(namespace, name)}/status",
            body=msgspec.json.encode(patch),
            content_type=STRATEGIC_PATCH,
        )


def pod_path(namespace: str, name: str) -> str:
    """Where a pod is found."""
    return f"/api/v1/namespaces/{quote(namespace, '')}/pods/{quote(name, '')}"


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): text for name, text in response.headers.items()}


def _proxy_of(access: Access) -> str:
    """The proxy that the environment asks for, as other clients take it."""
    if proxy_bypass(access.host):
        return ""
    return getproxies().get("https" if access.secure else "http", "")
