"""One connection to the API server, in memory and on virtual time.

`ApiClient` is above it, unchanged: its pool of connections, its HTTP parser, its watches, its lists
and their pages. Below are bytes of HTTP/1.1, made of what the lab's API server answers, and the
faults of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec

from podium.kube.connections import Answer

if TYPE_CHECKING:
    from world.network import Network, Sent
    from world.plan import Fault

#: What happens to a watch before its first line.
_REFUSES_WATCH = frozenset({"refused", "403", "429-after", "500"})


class Request(NamedTuple):
    """A request as it came over a connection."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def is_watch(self) -> bool:
        """Whether its answer goes on until somebody ends it."""
        return "watch" in self.params


def parsed(data: bytes) -> Request:
    """The request in these bytes, which are one whole request."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, text = line.partition(": ")
        headers[name.lower()] = text
    assert version == "HTTP/1.1"
    assert headers["host"]
    assert int(headers.get("content-length", "0")) == len(body)
    path, _, query = target.partition("?")
    return Request(method, path, dict(parse_qsl(query)), headers, body)


class Wire(asyncio.Transport):
    """The client's end of a connection, and whoever answers at the other end."""

    def __init__(self, network: Network, replica: str, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._network, self.replica, self._protocol = network, replica, protocol
        self._certificate = network.presented[replica]
        self._is_closed = self._is_paused = False
        self._unread: list[bytes] = []
        #: Whether the other end has closed the connection, which the client reads last of all.
        self._has_end = False
        self._sent: Sent | None = None
        self._serving: asyncio.Task[None] | None = None

    # Called by the client -------------------------------------------------------------------------

    def write(self, data: bytes) -> None:  # type: ignore[override]
        """Send a request, of which there is one at a time."""
        network = self._network
        if self._is_closed or self.replica in network.dead:
            return
        request = parsed(data)
        is_used = self._sent is not None
        assert self._sent is None or self._sent.ended, "a request before the answer to another"
        self._sent = network.note(self.replica, request)
        self._sent.is_on_used = is_used
        serve = self._watch if request.is_watch else self._exchange
        self._serving = network.loop.create_task(serve(self._sent, request))

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    def close(self) -> None:
        """Close the connection."""
        self._end(None)

    def abort(self) -> None:
        """Close the connection at once."""
        self._end(None)

    def pause_reading(self) -> None:
        """Leave what comes."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Take what has come, and what comes from now on."""
        self._is_paused = False
        self._network.loop.call_soon(self._take_unread)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """There is no socket."""
        return default

    # The other end --------------------------------------------------------------------------------

    def reset(self) -> None:
        """End the connection from the other end."""
        self._end(ConnectionResetError(104, "Connection reset by peer"))

    def _end(self, error: Exception | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        network, serving = self._network, self._serving
        network.wires.pop(self, None)
        if self._sent is not None and not self._sent.ended:
            self._sent.ended = network.loop.time()
        if serving is not None and serving is not asyncio.current_task(network.loop):
            serving.cancel()
        network.loop.call_soon(self._protocol.connection_lost, error)

    def _deliver(self, data: bytes) -> None:
        """Let the client receive bytes, now or when it reads again."""
        if self._is_closed or not data:
            return
        assert self._sent is not None
        self._sent.came = True
        if self._is_paused or self._unread:
            self._unread.append(data)
        else:
            self._protocol.data_received(data)

    def _take_unread(self) -> None:
        while self._unread and not self._is_paused and not self._is_closed:
            self._protocol.data_received(self._unread.pop(0))
            if not self._unread and self._sent is not None and self._sent.opened:
                self._sent.heard.append(self._network.loop.time())
        if self._has_end and not self._unread:
            self._end(None)

    def _finish(self) -> None:
        """Close the connection from the other end; the client can read what was sent before."""
        if self._unread:
            self._has_end = True
        else:
            self._end(None)

    async def _deliver_in_pieces(self, data: bytes) -> None:
        """Let bytes arrive in parts that begin and end anywhere."""
        rng = self._network.rng
        cuts = sorted({rng.randrange(len(data)) for _ in range(rng.randint(1, 4))} | {0, len(data)})
        for start, end in pairwise(cuts):
            self._deliver(data[start:end])
            await asyncio.sleep(rng.choice((0.0, 0.001)))

    # Short requests -------------------------------------------------------------------------------

    async def _exchange(self, sent: Sent, request: Request) -> None:
        """Answer a request, as the plan has it."""
        network = self._network
        if network.is_stormed:
            await asyncio.Event().wait()
        await network.transmit()
        fault = None
        if not self._is_known(sent, request):
            answer = refused_credentials()
        else:
            fault = network.pick(sent.verb)
            sent.fault = fault.kind if fault is not None else ""
            outcome = await self._answer(sent, request, fault)
            if outcome is None:
                self.reset()
                return
            answer = outcome
        if fault is not None and fault.kind == "lost":
            whole = written(answer)
            self._deliver(whole[: network.rng.choice((0, 0, 20, len(whole) - 1))])
            self.reset()
            return
        if fault is not None and fault.kind == "garbage":
            answer = Answer(200, {}, b"<html>")
        await self._send(sent, answer)

    async def _answer(self, sent: Sent, request: Request, fault: Fault | None) -> Answer | None:
        """The answer of the API server; None where there is none."""
        network = self._network
        if fault is None:
            return await self._carried_out(sent, request)
        if fault.kind == "refused":
            return None
        if fault.kind == "hang":
            await network.healed.wait()
            return None
        if fault.kind[:1].isdigit():
            return _refused(fault)
        if fault.kind == "slow":
            await network.pause(fault.seconds)
        answer = await self._carried_out(sent, request)
        if fault.kind == "late":
            await network.pause(fault.seconds)
        return answer

    def _is_known(self, sent: Sent, request: Request) -> bool:
        """Whether the API server accepts the token and the certificate of a request."""
        network = self._network
        is_known = (
            request.headers.get("authorization") == f"Bearer {network.token}"
            and self._certificate == network.certificate
        )
        if not is_known:
            sent.fault = "401"  # the client may act on it before the last byte has come
        return is_known

    async def _carried_out(self, sent: Sent, request: Request) -> Answer:
        """Let the API server act; nothing else happens meanwhile."""
        network, messages = self._network, []

        async def send(message: Any) -> None:
            messages.append(message)

        assert not network.writer
        network.writer = self.replica
        try:
            await network.server()(self._scope(request), _receiving(request.body), send)
        finally:
            network.writer = ""
        body = b"".join([message.get("body", b"") for message in messages[1:]])
        status = messages[0]["status"]
        sent.done, sent.took = status < 300, network.loop.time() - sent.time
        sent.is_part = sent.verb == "list" and b'"continue":"' in body
        return Answer(status, _headers(messages[0]), body)

    async def _send(self, sent: Sent, answer: Answer) -> None:
        """Send a whole answer, which may look odd."""
        network = self._network
        quirk = network.odd()
        data = written(answer, quirk)
        if quirk == "in pieces":
            await self._deliver_in_pieces(data[:-1])
            data = data[-1:]
        sent.answered, sent.ended = answer.status, network.loop.time()
        self._deliver(data)
        if quirk in {"closed", "closed unsaid"}:
            # Without a word of it the client learns of the end when it uses the connection again.
            if quirk == "closed unsaid":
                await asyncio.sleep(network.rng.choice((0.0, 0.5)))
            self._end(None)

    def _scope(self, request: Request) -> dict[str, Any]:
        params = request.params
        if "limit" in params:
            params = {**params, "limit": str(min(int(params["limit"]), self._network.page))}
        return {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(request.path),
            "raw_path": request.path.encode(),
            "query_string": urlencode(params).encode(),
            "headers": [(name.encode(), text.encode()) for name, text in request.headers.items()],
            "scheme": "http",
            "server": ("lab", 80),
            "client": ("lab", 1),
        }

    # Watches --------------------------------------------------------------------------------------

    async def _watch(self, sent: Sent, request: Request) -> None:
        """Answer a watch until somebody ends it."""
        network = self._network
        await network.transmit()
        if not self._is_known(sent, request):
            await self._send(sent, refused_credentials())
            return
        fault = network.pick("watch")
        if fault is not None and fault.kind in _REFUSES_WATCH:
            sent.fault = fault.kind
            if fault.kind == "refused":
                self.reset()
            else:
                await self._send(sent, _refused(fault))
            return
        async with self._messages(request) as messages:
            start = await messages.get()
            if start is None:
                self.reset()
                return
            if start["status"] >= 300:
                body = b""
                while (message := await messages.get()) is not None:
                    body += message.get("body", b"")
                await self._send(sent, Answer(start["status"], _headers(start), body))
                return
            sent.opened = network.loop.time()
            self._deliver(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while (message := await messages.get()) is not None:
                piece = message.get("body")
                if piece and not await self._pass_on(sent, piece):
                    return
            self._deliver(_LAST_CHUNK)
            self._finish()

    @asynccontextmanager
    async def _messages(self, request: Request) -> AsyncIterator[asyncio.Queue[Any]]:
        """What the API server answers to a watch; None at its end."""
        messages: asyncio.Queue[Any] = asyncio.Queue()
        scope, server = self._scope(request), self._network.server()

        async def watch() -> None:
            try:
                await server(scope, _receiving(b"", ends=False), messages.put)
            finally:
                messages.put_nowait(None)

        task = self._network.loop.create_task(watch())
        try:
            yield messages
        finally:
            task.cancel()

    async def _pass_on(self, sent: Sent, piece: bytes) -> bool:
        """Pass a part of a watch on; False if that was its end."""
        network = self._network
        await network.transmit()
        fault = network.pick("watch")
        kind = fault.kind if fault is not None else ""
        if fault is not None and kind == "lag":
            await network.pause(fault.seconds)
        elif kind == "cut":
            self._deliver(_LAST_CHUNK)
            self._finish()
        elif kind == "cut-inside":
            self._deliver(_chunk(piece[: network.rng.randrange(len(piece))]))
            self.reset()
        elif kind == "silent":
            await network.healed.wait()
            self.reset()
        elif kind == "410":
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}
            line = msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
            self._deliver(_chunk(line) + _LAST_CHUNK)
            self._finish()
        if self._is_closed or self._has_end:
            return False
        if network.oddity and network.rng.random() < network.oddity:
            network.injected["watch in pieces"] += 1
            await self._deliver_in_pieces(_chunk(piece))
        else:
            self._deliver(_chunk(piece))
        if not self._unread:
            sent.heard.append(network.loop.time())
        return True


_LAST_CHUNK = b"0\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def written(answer: Answer, quirk: str = "") -> bytes:
    """An answer as bytes."""
    lines = [f"{name}: {text}" for name, text in answer.headers.items() if name != "content-length"]
    if quirk == "closed":
        lines.append("Connection: close")
    if quirk == "in chunks":
        lines.append("Transfer-Encoding: chunked")
        half = len(answer.body) // 2
        body = _chunk(answer.body[:half]) + _chunk(answer.body[half:]) + _LAST_CHUNK
    else:
        lines.append(f"Content-Length: {len(answer.body)}")
        body = answer.body
    head = "\r\n".join([f"HTTP/1.1 {answer.status} Said", *lines, "", ""]).encode()
    before = b"HTTP/1.1 103 Early Hints\r\n\r\n" if quirk == "with hints" else b""
    after = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" if quirk == "twice" else b""
    return before + head + body + after


def refused_credentials() -> Answer:
    """The answer to a request without a token that is accepted."""
    status = {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"}
    return Answer(401, {}, msgspec.json.encode(status))


def _refused(fault: Fault) -> Answer:
    """The answer of an API server that refuses, with the code at the begin of the fault's kind."""
    code, _, after = fault.kind.partition("-")
    headers = {"retry-after": str(max(int(fault.seconds), 1))} if after else {}
    status = {"kind": "Status", "code": int(code), "message": f"refused with {code}"}
    return Answer(int(code), headers, msgspec.json.encode(status))


def _headers(start: Any) -> dict[str, str]:
    return {name.decode(): text.decode() for name, text in start.get("headers") or ()}


def _receiving(body: bytes, *, ends: bool = True) -> Any:
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        if not ends:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive
