"""A request whose answer does not end: a watch, on a connection of its own.

The pieces of the answer are handed on as they come: to a task that iterates over them, or to a
function. The event loop itself calls the function, so that no task is woken for each piece. Of many
pieces that have come already, some are handed on before other tasks run. A burst of changes holds
up no decision for long, and a busy scheduler does not fall behind the changes of its cluster. A
reader that is slower than the server lets it wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

import httptools

from podium.kube.connections import NOT_HTTP, BrokenError, notice_death
from podium.kube.watch_pace import WatchPace

#: So many bytes may wait to be read before the server has to wait.
_MOST_BYTES: Final = 1 << 20
#: With so many bytes at once, the pieces wait for their turn even if they have a function to go to.
_BURST_BYTES: Final = 1 << 16
#: How long pieces are handed on before other tasks run; the scheduling loop takes turns as long.
SLICE_SECONDS: Final = 0.005


class WatchConnection(asyncio.Protocol):
    """One connection with one request, and what has come of its answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """*clock* measures silence, and how long pieces are handed on before other tasks run."""
        loop = asyncio.get_running_loop()
        self._loop, self._clock = loop, clock
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self.headers: dict[str, str] = {}
        #: The status of the answer, once its headers have come.
        self.status: asyncio.Future[int] = loop.create_future()
        self._pieces: deque[bytes] = deque()
        self._bytes = 0
        self._paused = False
        self._ended = False
        self._error: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None
        #: Called with every piece while `hand_on` waits for the end of the answer.
        self._take: Callable[[bytes], None] | None = None
        self._is_burst = False
        #: Decides about rests while `hand_on` waits; None where there are none.
        self._pace: WatchPace | None = None
        #: What `_take` has raised, which ends the watch.
        self._refused: Exception | None = None
        self._heard_at = self._clock()
        self._alarm: asyncio.TimerHandle | None = None

    # Called by the event loop ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        notice_death(transport)

    def data_received(self, data: bytes) -> None:
        """Parse a part of the answer; what follows its end is dropped."""
        if self._ended:
            return
        before, self._heard_at = self._heard_at, self._clock()
        self._is_burst = len(data) >= _BURST_BYTES
        try:
            self._parser.feed_data(data)
        except NOT_HTTP as error:
            self._fail(BrokenError(f"an answer that is not HTTP: {error}", nothing_came=False))
            self.abort()
            return
        if self._pace is not None and not self._paused:
            self._pace.after_read(self, self._heard_at - before)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, which ends only an answer without a length."""
        self._transport = None
        has_length = {"content-length", "transfer-encoding"} & self.headers.keys()
        if exc is None and self._error is None and self.status.done() and not has_length:
            self._ended = True
        what = str(exc) if exc else "the connection was closed before the answer was complete"
        self._fail(BrokenError(what, nothing_came=not self.status.done()))

    # Called by the parser -------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the answer was parsed; those that follow its body are dropped."""
        if not self.status.done():
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers were parsed; those of an informational answer (1xx) are dropped."""
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = {}
        elif not self.status.done():
            self.status.set_result(status)

    def on_body(self, body: bytes) -> None:
        """A piece of the body was parsed; another answer behind this one is dropped."""
        if self._ended:
            return
        if self._take is not None and not self._pieces and not self._is_burst:
            self._hand(self._take, body)
            return
        self._pieces.append(body)
        self._bytes += len(body)
        transport = self._transport
        if self._bytes > _MOST_BYTES and not self._paused and transport is not None:
            self._paused = True
            if not transport.is_closing():
                transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """The answer is complete."""
        if self.status.done():
            self._ended = True
            self._wake()

    def _fail(self, error: OSError) -> None:
        if self._error is None:
            self._error = error
        if not self.status.done():
            self.status.set_exception(error)
            self.status.exception()  # which may not be asked for: the watch may be cancelled
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # Called by the client -------------------------------------------------------------------------

    def send(self, request: bytes, idle_seconds: float) -> None:
        """Send the request; silence of *idle_seconds* ends the connection from now on."""
        if self._transport is None:
            raise BrokenError("the connection was closed", nothing_came=True)
        self._heard_at = self._clock()
        self._alarm = self._loop.call_later(idle_seconds, self._listen, idle_seconds)
        self._transport.write(request)

    def _listen(self, idle_seconds: float) -> None:
        """End the connection if nothing has come for too long; otherwise look again later."""
        now = self._clock()
        if self._paused:
            self._heard_at = now
        left = self._heard_at + idle_seconds - now
        if left > 0:
            self._alarm = self._loop.call_later(left, self._listen, idle_seconds)
            return
        self._fail(TimeoutError())
        self.abort()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The pieces of the body, until it ends; `OSError` if the connection ends before it."""
        while True:
            until = self._clock() + SLICE_SECONDS
            while self._pieces and self._refused is None:
                yield self._next_piece()
                self._resume()
                if self._pieces and self._clock() >= until:
                    await asyncio.sleep(0)
                    until = self._clock() + SLICE_SECONDS
            if self._refused is not None:
                raise self._refused
            if self._ended:
                return
            if self._error is not None:
                raise self._error
            self._waiter = self._loop.create_future()
            await self._waiter

    async def hand_on(
        self, take: Callable[[bytes], None], /, *, pace: WatchPace | None = None
    ) -> None:
        """Call *take* with every piece of the body; returns and raises as `pieces` ends.

        A piece that comes alone is handed on at once, as a part of receiving it. What comes in a
        burst waits for the task that runs this, which lets other tasks run every few milliseconds.
        An error of *take* is raised here, and no further piece is handed on.
        """
        self._take, self._pace = take, pace
        try:
            async for piece in self.pieces():
                take(piece)
        finally:
            self._take = self._pace = None
            if pace is not None:
                pace.forget(self)

    def _hand(self, take: Callable[[bytes], None], piece: bytes) -> None:
        """Hand on a piece that has just come; after an error the watch takes no further one."""
        try:
            take(piece)
        except Exception as error:  # noqa: BLE001  raised again by the task that waits
            self._refused = error
            self._take = None
            self._wake()

    def _next_piece(self) -> bytes:
        piece = self._pieces.popleft()
        self._bytes -= len(piece)
        return piece

    def _resume(self) -> None:
        """Let the server send again once enough of what has come was handed on."""
        if self._paused and self._bytes <= _MOST_BYTES // 2:
            self._paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    # Called by the pace ---------------------------------------------------------------------------

    def stop_reading(self) -> None:
        """Leave what arrives in the socket.

        Over TLS a transport that is paused goes on receiving, up to its limit of what may wait to
        be decrypted. The least limit leaves everything in the socket but what comes first.
        """
        transport: Any = self._transport
        if transport is None or transport.is_closing():
            return
        transport.pause_reading()
        set_limit = getattr(transport, "set_read_buffer_limits", None)
        if set_limit is not None:
            set_limit(1)

    def read_again(self) -> None:
        """Read what has arrived in the socket, and whatever arrives from now on."""
        transport: Any = self._transport
        if transport is None or transport.is_closing():
            return
        set_limit = getattr(transport, "set_read_buffer_limits", None)
        if set_limit is not None:
            set_limit()  # first: with the least limit, a part of a record would wait for the rest
        if not self._paused:
            transport.resume_reading()

    @property
    def has_unread(self) -> bool:
        """Whether pieces have come that were not handed on yet."""
        return bool(self._pieces) and self._take is not None and self._refused is None

    def abort(self) -> None:
        """Close the connection at once; a reader that still waits for the answer fails."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._fail(BrokenError("the connection was closed", nothing_came=not self.status.done()))
        if self._transport is not None:
            self._transport.abort()
