"""A lab's API server in a thread, and a small client for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import uvicorn

import manifests
from podium.lab.http.security import Guard
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry

TOKEN = "a-token-for-tests"  # noqa: S105
JSON = "application/json"
_T = TypeVar("_T")


class Reply(NamedTuple):
    """The status, body and headers of a response."""

    status: int
    body: Any
    headers: dict[str, str]


class LabServer:
    """The application on a port of its own, from `with` to the end of it.

    The registry belongs to the server's thread: look at it from a test through `within`.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry or Registry()
        self.app = ApiServer(self.registry)
        # Named as TCP, or asyncio waits for more before it sends (Nagle).
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = TOKEN
        config = uvicorn.Config(
            Guard(self.app, token=TOKEN, tokens=self.app.tokens),
            http="httptools",
            loop="uvloop",
            lifespan="off",
            access_log=False,
            log_level="warning",
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._server.serve(sockets=[self._socket]))

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            threading.Event().wait(0.005)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.force_exit = True
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def within(self, action: Callable[[], _T]) -> _T:
        """What *action* returns when it is called in the server's thread."""
        assert self._loop is not None

        async def called() -> _T:
            return action()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(30)

    # Talking
    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Send one request with the token; the reply may be an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type, **(headers or {})}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            text = response.read()
            found = {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()
        try:
            return Reply(response.status, json.loads(text), found)
        except ValueError:
            return Reply(response.status, text.decode("utf-8", "replace"), found)

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        return self._fine("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """The body of a POST that must succeed."""
        return self._fine("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """The body of a PUT that must succeed."""
        return self._fine("PUT", path, body)

    def patch(self, path: str, body: Any, form: str = "strategic-merge-patch+json") -> Any:
        """The body of a PATCH that must succeed."""
        return self._fine("PATCH", path, body, content_type=f"application/{form}")

    def delete(self, path: str, body: Any = None) -> Any:
        """The body of a DELETE that must succeed."""
        return self._fine("DELETE", path, body)

    def _fine(self, method: str, path: str, body: Any = None, *, content_type: str = JSON) -> Any:
        reply = self.call(method, path, body, content_type=content_type)
        assert reply.status < 300, reply
        return reply.body

    def watch(self, path: str, *, seconds: float = 60) -> Generator[Any]:
        """The events of a watch in the order in which they are received."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        glue = "&" if "?" in path else "?"
        try:
            connection.request(
                "GET", f"{path}{glue}watch=1", headers={"Authorization": f"Bearer {TOKEN}"}
            )
            response = connection.getresponse()
            assert response.status == 200, response.read()
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for this server."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": f"{self.url}/token/{TOKEN}"}}],
            "users": [{"name": "lab", "user": {"token": TOKEN}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        }
        path.write_text(json.dumps(document), "utf-8")
        return path


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    """A pod that every API server accepts."""
    filled = {"containers": [{"name": "app", "image": "registry/app:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": filled}


def node(name: str = "node", **labels: str) -> dict[str, Any]:
    """A node that is ready, with room."""
    return manifests.node(name, labels=labels)
