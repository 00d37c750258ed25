"""Watches that read less often while nothing is decided.

A node reports its status every few seconds, so that in a large cluster a report comes every other
millisecond. Reading each one by itself costs several times what the report costs in itself. While
no pod waits for a decision, a watch whose pieces come one shortly after the other rests: it leaves
what arrives in the socket for a while, and reads it together.

Nothing is decided meanwhile: `catch_up` reads all that has arrived before the next decision.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

#: How long a watch leaves what arrives in its socket.
REST_SECONDS: Final = 0.02


class RestingWatch(Protocol):
    """A watch that can leave what arrives in its socket."""

    def stop_reading(self) -> None:
        """Leave what arrives in the socket."""

    def read_again(self) -> None:
        """Read what has arrived, and whatever arrives from now on."""

    @property
    def has_unread(self) -> bool:
        """Whether it has received something that was not handed on yet."""


class WatchPace:
    """Decides when the watches of a client read."""

    def __init__(self, rest_seconds: float = REST_SECONDS) -> None:
        self._rest_seconds = rest_seconds
        self._may_rest = False
        self._resting: set[RestingWatch] = set()
        self._alarm: asyncio.TimerHandle | None = None

    def let_rest(self) -> None:
        """Allow watches to rest from now on."""
        self._may_rest = True

    def after_read(self, watch: RestingWatch, seconds_since_last: float) -> None:
        """Let a watch rest that has just read, if it has also done so shortly before."""
        if not self._may_rest or seconds_since_last > 2 * self._rest_seconds:
            return
        watch.stop_reading()
        self._resting.add(watch)
        if self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(self._rest_seconds, self._wake)

    def forget(self, watch: RestingWatch) -> None:
        """Forget a watch that was closed."""
        self._resting.discard(watch)

    async def catch_up(self) -> None:
        """End all rests, and return when everything that had arrived by now is handed on."""
        self._may_rest = False
        if not self._resting:
            return
        resting = [*self._resting]
        self._wake()
        # The event loop looks at the sockets in its next turn, and hands on in the one after it.
        for _ in range(2):
            await asyncio.sleep(0)
        while any(watch.has_unread for watch in resting):  # noqa: ASYNC110  tasks take turns
            await asyncio.sleep(0)

    def _wake(self) -> None:
        """Let all watches read again."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        resting, self._resting = self._resting, set()
        for watch in resting:
            watch.read_again()
