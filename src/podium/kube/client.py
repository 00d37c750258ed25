"""Requests to an API server: who asks, what comes back, and what it means when nothing does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from podium import __version__
from podium.kube.access import Access
from podium.kube.errors import ApiError, UnreachableError, refusal, words

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = 401


class _Request(NamedTuple):
    method: str
    target: str
    body: bytes | None
    content_type: str
    limit: aiohttp.ClientTimeout


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


class ApiClient:
    """Talks to one API server. To be used in an `async with`."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        access = self.access
        connector = aiohttp.TCPConnector(
            limit=0, ssl=access.tls if access.tls is not None else True, keepalive_timeout=60
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": f"podium/{__version__}", "Accept": JSON},
            auto_decompress=True,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

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
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_SECONDS)
        request = _Request(method, _target(path, params), body, content_type, limit)
        async with self._asked(request) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer that goes on and on, in pieces; silence of *idle_seconds* ends it."""
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=idle_seconds
        )
        request = _Request("GET", _target(path, params), None, JSON, limit)
        async with self._asked(request) as response:
            yield response.content.iter_any()

    @asynccontextmanager
    async def _asked(self, request: _Request) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            response = await self._send(request)
            if response.status == _UNAUTHORIZED and await self.access.rejected():
                response.release()
                response = await self._send(request)
            async with response:
                if response.status >= 300:
                    asked = f"{request.method} {self.access.url}{request.target}"
                    headers = {name.lower(): text for name, text in response.headers.items()}
                    raise refusal(response.status, headers, await response.read(), asked)
                yield response
        except ApiError:
            raise
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnreachableError(f"{self.access.url}: {words(error)}") from error

    async def _send(self, request: _Request) -> aiohttp.ClientResponse:
        assert self._session is not None, "use it in an async with"
        access = self.access
        headers = dict(await access.headers())
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method,
            f"{access.url}{request.target}",
            data=request.body,
            headers=headers,
            timeout=request.limit,
            proxy=access.proxy or None,
            server_hostname=access.server_name or None,
            allow_redirects=False,
        )

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
