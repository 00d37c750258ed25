"""An HTTP server with limits: strangers cannot take its connections, its time or its memory.

A connection must send the head of a request in some seconds, its body in some more, and read the
answer before it sends another request. There are at most so many connections; beyond that the one
that has waited longest without a request gives way to the new one. Descriptors are left over for
the API server.

A connection stays open between requests for as long as kube-apiserver keeps it. A client that sends
at the moment of the end cannot know whether its request was carried out.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from uvicorn.server import Server

from podium.serving.access.client_certificates import PeerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ssl import SSLContext

    from uvicorn.config import Config

#: Descriptors that no port takes: connections to the API server, watches, files.
_KEPT_DESCRIPTORS: Final = 100
#: Seconds before connections are accepted again after the last descriptor was taken.
_ACCEPT_PAUSE: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLimits:
    """What the clients of one port may take."""

    connections: int = 256
    #: How long TLS, the head of a request, and its body may take.
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    #: How long a client may leave its answer unread.
    unread_seconds: float = 60.0
    #: How long a client may wait before its next request. Clients end a connection before that.
    idle_seconds: int = 90
    #: The longest head of a request.
    head_bytes: int = 64 * 1024

    def connections_within(self, descriptors: int) -> int:
        """How many connections are accepted if the process may have so many *descriptors*."""
        return max(8, min(self.connections, (descriptors - _KEPT_DESCRIPTORS) // 2))


class _PipelinedError(Exception):
    """A request came before the answer to the last one was complete."""


class BoundedProtocol(PeerProtocol):
    """One connection, closed when a request takes too long to arrive or its answer is not read.

    Requests that are sent before the last answer has come would be kept without a limit: they end
    the connection.
    """

    def __init__(
        self,
        *,
        limits: PortLimits,
        answered: Callable[[], object],
        ended: Callable[[], object],
        **named: Any,
    ) -> None:
        """*answered* is called after each answer, *ended* when the connection has ended."""
        super().__init__(**named)
        self._limits, self._answered, self._ended = limits, answered, ended
        self.timeout_keep_alive = limits.idle_seconds
        self._alarm: asyncio.TimerHandle | None = None
        #: Rings when an answer was not read in time.
        self._unread_alarm: asyncio.TimerHandle | None = None
        self._is_pipelined = False
        self._head_bytes = 0
        #: Whether a request is being answered or its body is read.
        self.is_busy = False

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect(self._limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that is too long ends the connection."""
        if not self.is_busy:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self.is_busy and self._head_bytes > self._limits.head_bytes:
            self.give_up()

    def on_message_begin(self) -> None:
        """The head of a request begins."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._is_pipelined = True
            raise _PipelinedError
        super().on_message_begin()
        self._expect(self._limits.head_seconds)

    def on_headers_complete(self) -> None:
        """The head is complete, and the body follows."""
        self.is_busy, self._head_bytes = True, 0
        self._expect(self._limits.body_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete; its answer may take long."""
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer was sent, and the connection may be used again."""
        self.is_busy = False
        self._answered()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or comes too early."""
        if self._is_pipelined:
            self.give_up()
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """The client does not read its answer as fast as it is written."""
        super().pause_writing()
        self._unread_alarm = self.loop.call_later(self._limits.unread_seconds, self.give_up)

    def resume_writing(self) -> None:
        """The client has read what was written."""
        self._cancel_unread()
        super().resume_writing()

    def _cancel_unread(self) -> None:
        if self._unread_alarm is not None:
            self._unread_alarm.cancel()
            self._unread_alarm = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._expect(None)
        self._cancel_unread()
        self._ended()
        super().connection_lost(exc)

    def _expect(self, seconds: float | None) -> None:
        """Close the connection in so many seconds unless something comes; None: do not."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if seconds is not None:
            self._alarm = self.loop.call_later(seconds, self.give_up)

    def give_up(self) -> None:
        """Close the connection at once."""
        self._expect(None)
        if self.transport is not None:
            self.transport.abort()


@dataclass(slots=True, eq=False)
class _Slot:
    """One connection, from the moment it is accepted until it has ended."""

    connection: socket.socket
    #: None before TLS is done.
    protocol: BoundedProtocol | None = None
    is_leaving: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_idle(self) -> bool:
        """Whether no request is read or answered on it."""
        return not self.is_leaving and (self.protocol is None or not self.protocol.is_busy)

    def close(self) -> None:
        """Close the connection; `ended` is set when its descriptor is free."""
        self.is_leaving = True
        if self.protocol is not None:
            self.protocol.give_up()
        else:  # its event loop sees the end, and fails to do TLS
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)


class BoundedServer(Server):
    """Accepts connections itself, so many at a time; leaves signals to the program."""

    def __init__(self, config: Config, limits: PortLimits, tls: SSLContext | None) -> None:
        super().__init__(config)
        self.servers = []
        self._limits, self._tls = limits, tls
        self._most = limits.connections_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        #: All connections, with what hands them on, in the order in which they last had an answer.
        self._slots: dict[_Slot, asyncio.Task[None]] = {}
        self._accepting: list[asyncio.Task[None]] = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        loop = asyncio.get_running_loop()
        for each in sockets or ():
            each.setblocking(False)  # noqa: FBT003
            self._accepting.append(loop.create_task(self._accept(each)))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end those that are open."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for slot in [each for each in self._slots if each.protocol is None]:
            slot.close()
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is left, or the client is gone
                await self._make_room()
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            if len(self._slots) >= self._most and not await self._make_room():
                connection.close()
            else:
                slot = _Slot(connection)
                self._slots[slot] = loop.create_task(self._begin(slot))
            # The next one may have been there already, and others want to run.
            await asyncio.sleep(0)

    async def _make_room(self) -> bool:
        """End the connection that has waited longest without a request; False if none has."""
        slot = next((each for each in self._slots if each.is_idle), None)
        if slot is None:
            return False
        slot.close()
        await slot.ended.wait()
        return True

    def _move_to_end(self, slot: _Slot) -> None:
        if slot in self._slots:
            self._slots[slot] = self._slots.pop(slot)

    def _end(self, slot: _Slot) -> None:
        self._slots.pop(slot, None)
        slot.ended.set()

    async def _begin(self, slot: _Slot) -> None:
        """Do TLS, and hand the connection to the HTTP parser."""
        loop = asyncio.get_running_loop()

        def made() -> BoundedProtocol:
            return BoundedProtocol(
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
                _loop=loop,
                limits=self._limits,
                answered=lambda: self._move_to_end(slot),
                ended=lambda: self._end(slot),
            )

        named: dict[str, Any] = {}
        if self._tls is not None:
            named = {"ssl": self._tls, "ssl_handshake_timeout": self._limits.handshake_seconds}
        try:
            _, slot.protocol = await loop.connect_accepted_socket(made, slot.connection, **named)
        except BaseException as error:
            slot.connection.close()
            self._end(slot)
            if not isinstance(error, OSError):  # no TLS, or the client is gone, or it must go
                raise
        if slot.is_leaving and slot.protocol is not None:
            slot.protocol.give_up()  # it had to make room meanwhile
