"""Something between a client and the API server that does whatever networks and servers do wrong.

It ends TLS with the API server's own certificate, so a kubeconfig with its address works as it is.
Requests are told apart by method and path; whatever no fault is meant for passes through.

    with Proxy(plane) as proxy:
        kubeconfig = plane.kubeconfig(ADMIN, url=proxy.url)
        proxy.answer("POST", "/binding", 500, times=3)
        proxy.swallow("POST", "/binding", times=1, carried_out=True)
        proxy.cut()
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

from control_plane.harness import ControlPlane


@dataclass
class Fault:
    """What happens to some requests."""

    method: str
    pattern: re.Pattern[str]
    times: float
    #: Seconds before anything else happens.
    seconds: float = 0.0
    #: The answer, or None for none at all.
    reply: bytes | None = None
    #: Whether the request reaches the API server all the same.
    carried_out: bool = False
    #: Just late.
    passes: bool = False
    #: How often it happened.
    hits: int = 0

    def meets(self, method: str, target: str) -> bool:
        if self.hits >= self.times or self.method not in {method, "*"}:
            return False
        return self.pattern.search(target) is not None


@dataclass(eq=False)
class _Client:
    """One connection of a client, and what it asked last."""

    writer: asyncio.StreamWriter
    upstream: asyncio.StreamWriter | None = None
    target: str = ""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Proxy:
    """A proxy in a thread of its own. Its methods may be called from anywhere."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.url = ""
        #: Every request, as method and path with its query.
        self.requests: list[tuple[str, str]] = []
        self._faults: list[Fault] = []
        self._clients: set[_Client] = set()
        self._refusing = False
        #: How many calls were refused.
        self.refused = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    # What goes wrong ------------------------------------------------------------------------------

    def answer(
        self,
        method: str,
        pattern: str,
        status: int,
        *,
        times: float = float("inf"),
        message: str = "so it was arranged",
        headers: Mapping[str, str] | None = None,
        carried_out: bool = False,
    ) -> Fault:
        """Answer with a code; *carried_out*: only after the API server did what was asked."""
        reason = HTTPStatus(status).phrase.replace(" ", "")
        fields = {"kind": "Status", "status": "Failure", "code": status}
        body = json.dumps({**fields, "reason": reason, "message": message}).encode()
        all_headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
        reply = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body
        return self._add(Fault(method, re.compile(pattern), times, 0, reply, carried_out))

    def swallow(
        self, method: str, pattern: str, *, times: float = float("inf"), carried_out: bool = False
    ) -> Fault:
        """Never answer."""
        return self._add(Fault(method, re.compile(pattern), times, carried_out=carried_out))

    def delay(
        self, method: str, pattern: str, seconds: float, *, times: float = float("inf")
    ) -> Fault:
        """Pass requests on later."""
        return self._add(Fault(method, re.compile(pattern), times, seconds, passes=True))

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self._faults.clear()
        self._refusing = False

    def refuse(self) -> None:
        """Hang up on everybody, and on all who call, until healed."""
        self._refusing = True
        self.cut()

    def cut(self, pattern: str = "") -> int:
        """Hang up on those whose last request matches (a watch: `watch=`); how many."""
        return asyncio.run_coroutine_threadsafe(self._cut(pattern), self._loop).result(10)

    async def _cut(self, pattern: str) -> int:
        met = [client for client in self._clients if re.search(pattern, client.target)]
        for client in met:
            client.writer.transport.abort()
        return len(met)

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    # Life -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        folder = self._plane.folder / "certificates"
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _end(self) -> None:
        self._server.close()
        await asyncio.sleep(0.01)  # whoever was let in just now has begun by then
        await self._cut("")
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # so that what was aborted is closed

    # Passing on -----------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer)
        self._clients.add(client)
        try:
            while not self._refusing:
                await self._one(client, reader)
            self.refused += 1
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._clients.discard(client)
            for task in client.tasks:
                task.cancel()
            for each in (client.upstream, writer):
                if each is not None:
                    each.transport.abort()

    async def _one(self, client: _Client, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ", 2)
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await reader.readexactly(int(found[1])) if found else b""
        client.target = target
        self.requests.append((method, target))
        fault = next((each for each in self._faults if each.meets(method, target)), None)
        if fault is None:
            await self._pass_on(client, head + body)
            return
        fault.hits += 1
        await asyncio.sleep(fault.seconds)
        if fault.passes:
            await self._pass_on(client, head + body)
            return
        if fault.carried_out:
            await self._carry_out(head, body)
        if fault.reply is None:
            await asyncio.sleep(3600)
        else:
            client.writer.write(fault.reply)
            await client.writer.drain()

    async def _pass_on(self, client: _Client, request: bytes) -> None:
        if client.upstream is None:
            upstream, client.upstream = await self._connected()
            client.tasks.append(asyncio.create_task(_pump(upstream, client.writer)))
        client.upstream.write(request)
        await client.upstream.drain()

    async def _carry_out(self, head: bytes, body: bytes) -> None:
        """Do what is asked on a connection of its own, and forget the answer."""
        reader, writer = await self._connected()
        try:
            writer.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
            await reader.read()
        finally:
            writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls: Any = ssl.create_default_context(cafile=str(self._plane.authority))
        port = int(self._plane.url.rpartition(":")[2])
        return await asyncio.open_connection("127.0.0.1", port, ssl=tls)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
