"""A client of a lab's API server in the same process: no sockets, no HTTP.

The API server's application is called as an HTTP server would call it. The errors are those of
`podium.kube.client`: an `ApiError` for a refusal, an `UnreachableError` for an answer that does not
come in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlencode

import msgspec

from podium.kube.api import JSON, KubeApi, always
from podium.kube.connections import Answer
from podium.kube.errors import UnreachableError, refusal
from podium.kube.pauses import with_asked_pause
from podium.lab.api.resources import BY_NAME
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.imported_pods import ImportedPod
from podium.lab.store.store import Store
from podium.scheduler.state.begun_lists import UNFINISHED

PODS: Final = BY_NAME["Pod"]


class InProcessApi(KubeApi):
    """Calls the application of an API server.

    `server` may be replaced by another one over the same store, as when the server is restarted.
    """

    def __init__(
        self,
        server: ApiServer | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        decodes_lists: bool = False,
    ) -> None:
        """Call *server*; the pauses that it asks for are spent in *sleep*.

        With *decodes_lists* the pods of a list are read from the store, without a request.
        """
        self._sleep = sleep
        self._decodes_lists = decodes_lists
        self.server = server or ApiServer(Registry(Store()))

    @property
    def registry(self) -> Registry:
        """The objects of the API server."""
        return self.server.registry

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

        It is sent once more after the pause that the API server asks for with 429 or 503.
        """

        async def send(seconds: float) -> Answer:
            before_send()
            try:
                async with asyncio.timeout(seconds):
                    return await self.exchange(method, path, params, body, content_type)
            except TimeoutError:
                raise UnreachableError("no answer in time") from None

        answer = await with_asked_pause(send, self._sleep, timeout)
        if answer.status >= 300:
            raise refusal(answer.status, answer.headers, answer.body, f"{method} {path}")
        return answer.body

    async def decoded_list(
        self, path: str, params: Mapping[str, str], decoder: msgspec.json.Decoder[Any]
    ) -> tuple[list[Any], str] | None:
        """All unfinished pods as the store has them; None for anything else."""
        if not self._decodes_lists or path != PODS.path() or params != UNFINISHED:
            return None
        store = self.registry.store
        found = [
            each.pod() if isinstance(each, ImportedPod) else decoder.decode(each.data)
            for each in store.table(PODS.storage).ordered()
        ]
        return [pod for pod in found if not pod.finished], str(store.version)

    async def exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
    ) -> Answer:
        """Send one request; the answer, whatever its code."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = _scope(method, path, params, content_type)
        await self.server(scope, _receiving(body), send)
        text = b"".join([message.get("body", b"") for message in sent[1:]])
        return Answer(sent[0]["status"], _headers(sent[0]), text)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch; silence of *idle_seconds* ends it."""
        messages: asyncio.Queue[Any] = asyncio.Queue()
        scope = _scope("GET", path, params, JSON)

        async def watch() -> None:
            try:
                await self.server(scope, _receiving(None, ends=False), messages.put)
            finally:
                messages.put_nowait(None)

        async def received() -> AsyncIterator[bytes]:
            while True:
                try:
                    async with asyncio.timeout(idle_seconds):
                        message = await messages.get()
                except TimeoutError:
                    raise UnreachableError("no answer in time") from None
                if message is None:
                    return
                if message.get("body"):
                    yield message["body"]

        task = asyncio.get_running_loop().create_task(watch())
        try:
            start = await messages.get()
            if start is None:
                raise UnreachableError("the API server has closed the connection")
            if start["status"] >= 300:
                text = b"".join([piece async for piece in received()])
                raise refusal(start["status"], _headers(start), text, f"GET {path}")
            yield received()
        finally:
            task.cancel()
            await asyncio.wait([task])


def _scope(
    method: str, path: str, params: Mapping[str, str] | None, content_type: str
) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": urlencode(params).encode() if params else b"",
        "headers": [
            (b"content-type", content_type.encode()),
            (b"accept", b"application/json"),
            (b"host", b"lab"),
        ],
        "scheme": "http",
        "server": ("lab", 80),
        "client": ("lab", 1),
    }


def _headers(start: Any) -> dict[str, str]:
    return {name.decode(): text.decode() for name, text in start.get("headers") or ()}


def _receiving(body: bytes | None, *, ends: bool = True) -> Any:
    parts = [{"type": "http.request", "body": body or b"", "more_body": False}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        if not ends:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive
