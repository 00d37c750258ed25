"""A server that does exactly what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from podium.kube.access import Access
from podium.kube.client import ApiClient

#: Answers one request: method, path, body and the connection.
Reply = Callable[[str, str, bytes, asyncio.StreamWriter], Awaitable[None]]


class Scripted:
    """What was asked, and by how many connections."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.asked: list[tuple[str, str]] = []
        self.heads: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        self.writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split("\r\n")[0].split(" ", 2)
                found = re.search(r"(?i)Content-Length: (\d+)", head)
                body = await reader.readexactly(int(found[1])) if found else b""
                self.asked.append((method, target))
                self.heads.append(head)
                await self.reply(method, target, body, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()


@asynccontextmanager
async def scripted(
    reply: Reply,
    access: Callable[[str], Access] = Access,
    *,
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ApiClient, Scripted]]:
    """A client, and the server it talks to, with *tls* over https."""
    script = Scripted(reply)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await script.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with ApiClient(access(url), **options) as client:
            yield client, script
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def answer(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer."""
    given = {"Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def run_uvloop(main: Coroutine[Any, Any, None]) -> None:
    """As the daemon runs."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
