"""Watches: every change of a collection, line by line, until the client has enough.

A watcher is a position in the history of its resource, not a queue: what it has not read yet is
kept once for all watchers, as encoded lines. Writers only ring a bell; it wakes all watchers of a
resource together and not more often than they can be served, so a hundred of them reading the same
burst share the same bytes. One that is so slow that the history has moved on is told 410 and cut.

Upstream: apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from podium.lab.api.encoding import encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError
from podium.lab.store.selection import Selection
from podium.lab.store.store import (
    ADDED,
    DELETED,
    MODIFIED,
    Event,
    Record,
    Store,
    Table,
    line_of,
)

BOOKMARK, ERROR = "BOOKMARK", "ERROR"
#: Seconds between two bookmarks to a watcher that wants them.
BOOKMARK_EVERY = 60.0
#: Seconds of rest between two rings, for each watcher of the resource, and at most.
_REST, _LONGEST_REST = 0.000_2, 0.05
_INITIAL_END = {"k8s.io/initial-events-end": "true"}
#: How many objects of the first list go out together.
_CHUNK = 500

#: A line for an event type and the record to show with it.
Liner = Callable[[str, Record], bytes]


class Bell:
    """Wakes those who wait for news of one resource."""

    def __init__(self, table: Table) -> None:
        """Ring after each event of *table*."""
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._rung_at = 0.0
        self._due = False
        #: The last burst of lines that somebody read, by where it begins and ends.
        self.burst: tuple[int, int, bytes] = (0, 0, b"")
        table.listeners.append(self.ring)

    def ring(self) -> None:
        """Wake everybody soon; called for each event."""
        if self._due or not self._waiting:
            return
        self._due = True
        rest = min(len(self._waiting) * _REST, _LONGEST_REST)
        wait = self._rung_at + rest - self._loop.time()
        if wait <= 0:
            self._loop.call_soon(self._wake)
        else:
            self._loop.call_later(wait, self._wake)

    def _wake(self) -> None:
        self._due = False
        self._rung_at = self._loop.time()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Wait for news, at most so long; whether there are any."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(future)
        timer = self._loop.call_later(max(seconds, 0), _give_up, future)
        try:
            await future
        except TimeoutError:
            return False
        finally:
            timer.cancel()
        return True


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


class Bells:
    """One bell per resource, made when somebody first listens."""

    def __init__(self, store: Store) -> None:
        """Listen to the tables of *store*."""
        self._store = store
        self._bells: dict[str, Bell] = {}

    def of(self, resource: str) -> Bell:
        """The bell of a resource."""
        bell = self._bells.get(resource)
        if bell is None:
            bell = self._bells[resource] = Bell(self._store.table(resource))
        return bell

    def ring_all(self) -> None:
        """More of the history may be shown than before."""
        for bell in self._bells.values():
            bell.ring()


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a watch is asked for."""

    #: Begin after this version; `None` begins with what exists.
    since: int | None = None
    bookmarks: bool = False
    #: Mark the end of what existed with a bookmark of its own.
    initial_end: bool = False
    seconds: float = 1800.0


class Watch:
    """One client that watches one collection."""

    def __init__(
        self,
        store: Store,
        bells: Bells,
        row: Resource,
        namespace: str,
        wanted: Selection,
        *,
        line: Liner | None = None,
    ) -> None:
        """Watch the objects of *row* that are *wanted*; *line* shows them in another form."""
        self._store = store
        self._table = store.table(row.storage)
        self._bell = bells.of(row.storage)
        self._row = row
        self._namespace = namespace
        self._wanted = wanted
        self._line = line
        #: Everything goes to everybody in the same bytes.
        self._plain = line is None and not namespace and wanted.everything
        self._position = 0

    async def stream(self, ask: WatchOptions) -> AsyncIterator[bytes]:
        """Lines, many at a time, until the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + ask.seconds
        if ask.since is None:
            self._position = self._store.durable
            for part in self._existing():
                yield part
            if ask.initial_end:
                yield self._bookmark(_INITIAL_END)
        else:
            self._position = ask.since
        bookmark_at = loop.time() + BOOKMARK_EVERY
        while True:
            try:
                lines = self._news()
            except StatusError as error:
                yield line_of(ERROR, encode(error.body()))
                return
            if lines:
                yield lines
                continue
            now = loop.time()
            if now >= end:
                if ask.bookmarks:
                    yield self._bookmark()
                return
            if ask.bookmarks and now >= bookmark_at:
                bookmark_at = now + BOOKMARK_EVERY
                yield self._bookmark()
            until = min(end, bookmark_at) if ask.bookmarks else end
            await self._bell.wait(until - now)

    def _existing(self) -> Iterator[bytes]:
        """What there is when the watch begins, as if it had just been added."""
        then = self._table.as_of(self._position, self._namespace)
        records = [each for each in then if self._wanted.matches(each)]
        for start in range(0, len(records), _CHUNK):
            part = records[start : start + _CHUNK]
            yield b"".join([self._shown(ADDED, each) for each in part])

    def _news(self) -> bytes:
        """The lines since the last time; empty when there is nothing new, or nothing for us."""
        until = self._store.durable
        if until <= self._position and self._position >= self._table.compacted:
            return b""
        if self._plain:
            return self._shared(until)
        events = self._table.since(self._position)
        lines = [self._translated(each) for each in events if each.version <= until]
        self._position = max(self._position, until)
        return b"".join(lines)

    def _shared(self, until: int) -> bytes:
        """The lines up to a version, joined once for all who read the same burst."""
        start, end, lines = self._bell.burst
        if start != self._position or end != until:
            events = self._table.since(self._position)
            lines = b"".join([each.line for each in events if each.version <= until])
            self._bell.burst = (self._position, until, lines)
        self._position = max(self._position, until)
        return lines

    def _translated(self, event: Event) -> bytes:
        """What an event means to somebody who sees only some objects."""
        record, before = event.record, event.before
        if self._namespace and record.key.namespace != self._namespace:
            return b""
        was = before is not None and self._wanted.matches(before)
        now = event.type != DELETED and self._wanted.matches(record)
        if now:
            kind = MODIFIED if was else ADDED
            if self._line is None and kind == event.type:
                return event.line
            return self._shown(kind, record)
        if not was or before is None:
            return b""
        if event.type == DELETED:
            return event.line if self._line is None else self._shown(DELETED, record)
        return self._shown(DELETED, _as_of(before, record.version))

    def _shown(self, kind: str, record: Record) -> bytes:
        return line_of(kind, record.data) if self._line is None else self._line(kind, record)

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        about: dict[str, object] = {"resourceVersion": str(self._position)}
        about["creationTimestamp"] = None
        if annotations:
            about["annotations"] = annotations
        item = {"kind": self._row.kind, "apiVersion": self._row.group_version, "metadata": about}
        return line_of(BOOKMARK, encode(item))


def _as_of(record: Record, version: int) -> Record:
    """An old state of an object, with the version at which it was left."""
    item = record.object()
    item["metadata"]["resourceVersion"] = str(version)
    return Record(record.key, version, encode(item), record.labels, record.fields)
