"""A client of a lab's API server in the same process: no sockets, no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from podium.kube.api import JSON, KubeApi
from podium.kube.errors import refusal
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store


class InProcessApi(KubeApi):
    """Calls the API server's application, and keeps what was asked."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry or Registry(Store())
        self.requests: list[tuple[str, str]] = []
        self._app: Any = ApiServer(self.registry)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> bytes:
        self.requests.append((method, path))
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        app = self._app(_scope(method, path, params, content_type), _receiving(body), send)
        async with asyncio.timeout(timeout):
            await app
        status = sent[0]["status"]
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        if status >= 300:
            raise refusal(status, {}, answer, f"{method} {path}")
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body" and message.get("body"):
                pieces.put_nowait(message["body"])

        async def watch() -> None:
            await self._app(_scope("GET", path, params, JSON), _receiving(None, ends=False), send)
            pieces.put_nowait(None)

        async def received() -> AsyncIterator[bytes]:
            while True:
                async with asyncio.timeout(idle_seconds):
                    piece = await pieces.get()
                if piece is None:
                    return
                yield piece

        task = asyncio.ensure_future(watch())
        try:
            yield received()
        finally:
            task.cancel()
            await asyncio.wait([task])


def _scope(
    method: str, path: str, params: Mapping[str, str] | None, content_type: str
) -> dict[str, Any]:
    headers = {"content-type": content_type, "accept": JSON, "host": "lab"}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(params or {}).encode(),
        "headers": [(name.encode(), text.encode()) for name, text in headers.items()],
        "scheme": "http",
        "server": ("lab", 80),
        "client": ("lab", 1),
    }


def _receiving(body: bytes | None, *, ends: bool = True) -> Any:
    parts = [{"type": "http.request", "body": body or b"", "more_body": False}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        if not ends:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive
