"""Short requests over connections that are kept open: every binding is sent this way.

A general HTTP client spends a third of a millisecond on a request, which is more than the decision
itself; a scheduler sends two for each pod. This client has only what an exchange with an API server
needs: one request at a time on a connection, and an answer of known or chunked length. It guesses
nothing when a connection breaks.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import httptools
import msgspec

from podium import __version__
from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.api import JSON, always
from podium.kube.http_rules import TARGET
from podium.kube.proxies import Proxy, tunnel

_USER_AGENT = f"podium/{__version__}"
CONNECT_SECONDS = 10.0
#: The server closes idle connections after 90 seconds; a request must not meet that moment.
IDLE_SECONDS = 45.0
#: Raised by the parser: what came is not HTTP, or changes to another protocol unasked.
NOT_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)
#: A header that says nothing about the length of an answer or the end of its connection.
_OTHER_HEADER = (
    rb"(?:(?![CcTtPp](?i:ontent-length|onnection|ransfer-encoding|roxy-connection))"
    rb"[A-Za-z0-9-]++:[\t -~]*+\r\n)*+"
)
#: The head of an answer with 200 to 203 and a length, as API servers write it.
_PLAIN_HEAD = re.compile(
    rb"HTTP/1\.1 (20[0-3]) [\t -~]*+\r\n"
    + _OTHER_HEADER
    + rb"(?i:content-length):[ \t]*([0-9]{1,18})[ \t]*+\r\n"
    + _OTHER_HEADER
    + rb"\r\n"
)


#: Keepalive: seconds of silence before the first probe, seconds between probes, how many of them;
#: milliseconds after which data without acknowledgement ends a connection.
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
_KEEPALIVE |= {"TCP_USER_TIMEOUT": 30_000}


def notice_death(transport: asyncio.BaseTransport) -> None:
    """Switch TCP keepalive on, so that a connection to a server that vanished ends."""
    found = transport.get_extra_info("socket")
    if found is None or found.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)  # not every system has them all
        if option is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)


class Answer(msgspec.Struct, frozen=True):
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    body: bytes


class BrokenError(OSError):
    """The connection ended before the answer did."""

    def __init__(self, what: str, *, nothing_came: bool) -> None:
        """Describe *what* happened; with *nothing_came* no byte of the answer arrived."""
        super().__init__(what)
        self.nothing_came = nothing_came


class Connection(asyncio.Protocol):
    """One connection and the request under way on it."""

    def __init__(self, generation: int, largest: float = math.inf) -> None:
        """An answer of more than *largest* bytes fails."""
        self.generation = generation
        self._largest = largest
        self.used_at = 0.0
        self.reused = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        #: When the request under way, or the last one, is too late, by the clock of the loop.
        self._ends = 0.0
        #: Rings when that may be so. It outlives a request, because the next one will need it: a
        #: timer for each would cost more than the time it measures.
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._begin()

    def _begin(self) -> None:
        #: Made for an answer that does not come whole, or is not a plain success.
        self._parser: httptools.HttpResponseParser | None = None
        self._seen = self._headed = self._kept = self._surplus = False

    # Called by the event loop ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        notice_death(transport)

    def data_received(self, data: bytes) -> None:
        """Parse a piece of an answer; one that no request waits for closes the connection."""
        if self._answer is None:
            self.abort()
            return
        if self._parser is None:
            if not self._seen and self._take_whole(data):
                return
            # A parser each time: one that has seen an odd answer must not read the next.
            self._parser = httptools.HttpResponseParser(self)
            self._headers: dict[str, str] = {}
            self._body: list[bytes] = []
            self._bytes = 0
        self._seen = True
        try:
            self._parser.feed_data(data)
        except NOT_HTTP as error:
            self._fail(f"an answer that is not HTTP: {error}")
            self.abort()

    def _take_whole(self, data: bytes) -> bool:
        """Take an answer that needs no parser: a success with its length, in one piece.

        Almost every answer to a write is one. Its headers say nothing that is asked for, so they
        are not read.
        """
        head = _PLAIN_HEAD.match(data)
        if head is None:
            return False
        end, length = head.end(), int(head[2])
        if end + length != len(data) or length > self._largest:
            return False
        self._seen = self._kept = True
        future, self._answer = self._answer, None
        if future is not None and not future.done():
            future.set_result(Answer(int(head[1]), {}, data[end:]))
        return True

    def eof_received(self) -> bool:
        """The server has closed its side, which ends an answer without a length."""
        if self._headed and not {"content-length", "transfer-encoding"} & self._headers.keys():
            self.on_message_complete()  # the end of the connection is the end of the answer
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed; the request under way fails."""
        self._transport = None
        self._set_alarm(None)
        self._fail(str(exc) if exc else "the connection was closed before the answer was complete")

    # Called by the parser -------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the answer was parsed."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers were parsed, and the body begins."""
        self._headed = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body was parsed."""
        self._body.append(body)
        self._bytes += len(body)
        if self._bytes > self._largest:
            self._fail(f"the answer is larger than {self._largest} bytes")
            self.abort()

    def on_message_complete(self) -> None:
        """The answer is complete, unless it is an informational one (1xx)."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._headers, self._headed = {}, False
            return
        self._kept = self._parser.should_keep_alive()
        future, self._answer = self._answer, None
        if future is not None and not future.done():
            future.set_result(Answer(status, self._headers, b"".join(self._body)))

    def on_message_begin(self) -> None:
        """An answer begins; one behind that of the request is not waited for by any."""
        if self._answer is None:
            self._surplus, self._headers = True, {}

    def _fail(self, what: str) -> None:
        future, self._answer = self._answer, None
        if future is not None and not future.done():
            future.set_exception(BrokenError(what, nothing_came=not self._seen))

    # Called by the pool ---------------------------------------------------------------------------

    def usable(self, now: float, generation: int) -> bool:
        """Whether another request may be sent on this connection."""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and self.generation == generation
            and now - self.used_at < IDLE_SECONDS
        )

    @property
    def kept(self) -> bool:
        """Whether the last exchange ended well and the server keeps the connection open."""
        return self._kept and not self._surplus and self._transport is not None

    def exchange(self, request: bytes, seconds: float) -> asyncio.Future[Answer]:
        """Send a request; its answer, which is waited for for *seconds* at most.

        The connection of a request that is cancelled is not `kept`.
        """
        transport = self._transport
        if transport is None:
            raise BrokenError("the connection was closed", nothing_came=True)
        if self.reused:
            self._begin()
        self.reused = True
        loop = self._loop
        answer: asyncio.Future[Answer] = loop.create_future()
        self._answer = answer
        ends = self._ends = loop.time() + seconds
        if self._alarm is None or ends < self._alarm_at:
            self._set_alarm(ends)
        transport.write(request)
        return answer

    def _set_alarm(self, at: float | None) -> None:
        """Let the alarm ring at this time instead; never, if it is None."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            self._alarm, self._alarm_at = self._loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        """End the request under way if its time is up; otherwise ring again when that is so."""
        self._alarm = None
        if self._answer is None:
            return
        if self._ends > self._loop.time():
            self._set_alarm(self._ends)
            return
        _time_out(self._answer)
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._set_alarm(None)
        if self._transport is not None:
            self._transport.abort()


def _time_out(awaited: asyncio.Future[Any]) -> None:
    """End the wait for something that has not come in time."""
    if not awaited.done():
        awaited.set_exception(TimeoutError())


_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)


async def connected(
    access: Access,
    made: Callable[[], _Protocol],
    seconds: float = CONNECT_SECONDS,
    *,
    proxy: Proxy | None = None,
) -> _Protocol:
    """Open a connection to the server, or to the proxy before it, in *seconds* at most.

    If its certificate is not trusted, the authority is read again: it may have been renewed.
    """
    async with asyncio.timeout(seconds):
        try:
            return await _connected(access, made, proxy)
        except ssl.SSLCertVerificationError:
            if not access.reload_authority():
                raise
            return await _connected(access, made, proxy)


async def _connected(
    access: Access, made: Callable[[], _Protocol], proxy: Proxy | None
) -> _Protocol:
    loop = asyncio.get_running_loop()
    name = access.server_name or access.host
    if proxy is not None and access.tls is not None:
        protocol = made()
        carrying = await tunnel(proxy, f"{access.bracketed_host}:{access.port}")
        transport = await loop.start_tls(carrying, protocol, access.tls, server_hostname=name)
        assert transport is not None
        protocol.connection_made(transport)
    elif proxy is not None:
        _, protocol = await loop.create_connection(made, proxy.host, proxy.port, ssl=proxy.tls)
    else:
        _, protocol = await loop.create_connection(
            made,
            access.host,
            access.port,
            ssl=access.tls,
            server_hostname=name if access.tls else None,
        )
    return protocol


class ConnectionPool:
    """Connections to one server; the one that was used last is used first."""

    def __init__(
        self,
        access: Access,
        size: int = 64,
        *,
        clock: Callable[[], float] = time.monotonic,
        proxy: Proxy | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        largest: float = math.inf,
    ) -> None:
        """Open at most *size* connections, each in *connect_seconds*.

        *clock* tells which of them are too old; an answer of more than *largest* bytes fails.
        """
        self._access, self._clock, self._proxy = access, clock, proxy
        self._size, self._connect_seconds, self._largest = size, connect_seconds, largest
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        default = 443 if access.secure else 80
        host = access.bracketed_host
        named = host if access.port == default else f"{host}:{access.port}"
        self._host_lines = f"Host: {named}\r\nUser-Agent: {_USER_AGENT}\r\n"
        #: What stands before each path: a proxy gets the whole address unless it is a tunnel.
        self._origin = ""
        if proxy is not None and not access.secure:
            self._origin = f"http://{named}"
            self._host_lines += proxy.authorization
        self._fixed = self._lines_of(JSON)
        #: What the credentials are, and the text of their headers; they change rarely.
        self._credentials: tuple[tuple[object, ...], str] = ((), "")

    async def exchange(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        *,
        seconds: float,
        before_send: Callable[[], None] = always,
    ) -> Answer:
        """Send one request; its answer, or `OSError` when none came.

        *before_send* is called once there is a connection, and may raise instead.
        """
        if self._access.credentials.fresh():
            request = self._written(method, target, body, content_type, self._fixed)
        else:
            request = await self.written(method, target, body, content_type)
        now = self._clock()
        ends = now + seconds
        while True:
            connection = self._kept_open(now)
            if connection is None:
                connection = await self._taken(ends)
                now = self._clock()
            again = connection.reused and method == "GET"
            try:
                before_send()
                return await connection.exchange(request, max(0.0, ends - now))
            except BrokenError as error:
                # The server may have closed it at that moment. A read can be repeated; whether a
                # write was carried out is not known, so only the caller can decide to repeat it.
                if not (again and error.nothing_came):
                    raise
            finally:
                self._give_back(connection)

    async def written(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        content_type: str = "",
        *,
        accept: str = JSON,
    ) -> bytes:
        """The text of a request, with credentials that have not expired."""
        if not self._access.credentials.fresh():
            await self._access.credentials.renew()
        return self._written(method, target, body, content_type, self._lines_of(accept))

    def _lines_of(self, accept: str) -> str:
        """The end of the first line of a request, and the headers that most requests have."""
        return f" HTTP/1.1\r\n{self._host_lines}Accept: {accept}\r\n"

    def _written(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        lines: str,
    ) -> bytes:
        if TARGET.fullmatch(target) is None:  # a name from a flag, such as that of a lease
            raise InputError(f"{target!r} is no path of a request")
        whole = f"{self._origin}{self._access.prefix}{target}"
        head = f"{method} {whole}{lines}{self._credential_lines()}"
        if body is None:
            return f"{head}\r\n".encode()
        head = f"{head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def _credential_lines(self) -> str:
        access = self._access
        known = (access.credentials.authorization, access.extra_headers)
        if known != self._credentials[0]:
            lines = (f"{name}: {text}\r\n" for name, text in access.headers())
            self._credentials = (known, "".join(lines))
        return self._credentials[1]

    def _kept_open(self, now: float) -> Connection | None:
        """Take a connection that no request is using; None if there is none."""
        generation = self._access.generation
        while self._idle:
            connection = self._idle.pop()
            if connection.usable(now, generation):
                return connection
            self._drop(connection)
        return None

    async def _taken(self, ends: float) -> Connection:
        """Take a connection for one request, waiting if all are in use."""
        while True:
            now, generation = self._clock(), self._access.generation
            kept = self._kept_open(now)
            if kept is not None:
                return kept
            if len(self._all) + self._opening < self._size:
                return await self._opened(generation, min(self._connect_seconds, ends - now))
            loop = asyncio.get_running_loop()
            turn = loop.create_future()
            self._waiting.append(turn)
            alarm = loop.call_later(ends - now, _time_out, turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled() and turn.exception() is None:
                    self._wake()  # the free connection goes to the next request
                raise
            finally:
                alarm.cancel()

    async def _opened(self, generation: int, seconds: float) -> Connection:
        self._opening += 1
        try:
            made = partial(Connection, generation, self._largest)
            connection = await connected(self._access, made, seconds, proxy=self._proxy)
        except BaseException:
            self._opening -= 1
            self._wake()
            raise
        self._opening -= 1
        self._all.add(connection)
        return connection

    def _give_back(self, connection: Connection) -> None:
        if connection.kept:
            connection.used_at = self._clock()
            self._idle.append(connection)
        else:
            self._drop(connection)
        self._wake()

    def _drop(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.abort()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        for connection in [*self._all]:
            self._drop(connection)
        self._idle.clear()
