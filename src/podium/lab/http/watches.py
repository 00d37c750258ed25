"""Watches: every change of a collection as a line of JSON, until the client or a timeout ends it.

A watch is a position in the history of its resource, not a queue. The history has each object once
for all watches, already encoded. A write only notifies a `ChangeSignal`, which wakes all watches of
the resource together, and no more often than they can be served. Watches that read the same batch
share its bytes. A watch that falls behind until its position is compacted ends with 410.

Upstream: apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from podium.lab.api.encoding import encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError
from podium.lab.http.responses import LineWriter
from podium.lab.store.selection import ObjectSelection
from podium.lab.store.store import (
    ADDED,
    DELETED,
    MODIFIED,
    ObjectVersion,
    Store,
    Table,
    WatchEvent,
    line_of,
)

BOOKMARK, ERROR = "BOOKMARK", "ERROR"
#: Seconds between two bookmarks to a client that allows them.
_BOOKMARK_INTERVAL = 60.0
#: Seconds between two wake-ups of a signal: so many per watch that waits, and at most so many.
_INTERVAL_PER_WATCH, _LONGEST_INTERVAL = 0.000_2, 0.05
_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
#: How many existing objects are sent together when a watch begins.
_INITIAL_BATCH = 500


class ChangeSignal:
    """Wakes the watches of one resource when it has new events."""

    def __init__(self, table: Table) -> None:
        """Be notified of each event of *table*."""
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._woken_at = 0.0
        self._is_due = False
        #: The last lines that were read, by the versions after which they begin and end.
        self.last_batch: tuple[int, int, bytes] = (0, 0, b"")
        table.listeners.append(self.notify)

    def notify(self) -> None:
        """Wake all watches soon; called after each event."""
        if self._is_due or not self._waiting:
            return
        self._is_due = True
        interval = min(len(self._waiting) * _INTERVAL_PER_WATCH, _LONGEST_INTERVAL)
        delay = self._woken_at + interval - self._loop.time()
        if delay <= 0:
            self._loop.call_soon(self._wake)
        else:
            self._loop.call_later(delay, self._wake)

    def _wake(self) -> None:
        self._is_due = False
        self._woken_at = self._loop.time()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Wait for an event, at most *seconds*; return whether there is one."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(future)
        timer = self._loop.call_later(max(seconds, 0), _time_out, future)
        try:
            await future
        except TimeoutError:
            return False
        finally:
            timer.cancel()
        return True


def _time_out(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


class ChangeSignals:
    """One signal per resource, made when the resource is first watched."""

    def __init__(self, store: Store) -> None:
        """Signal the events of *store*."""
        self._store = store
        self._signals: dict[str, ChangeSignal] = {}

    def of(self, resource: str) -> ChangeSignal:
        """The signal of a resource, by the name under which it is stored."""
        signal = self._signals.get(resource)
        if signal is None:
            signal = self._signals[resource] = ChangeSignal(self._store.table(resource))
        return signal

    def notify_all(self) -> None:
        """Wake all watches, because events that were already stored have become durable."""
        for signal in self._signals.values():
            signal.notify()


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch."""

    #: Begin after this version; `None` begins with the objects that exist.
    since: int | None = None
    bookmarks: bool = False
    #: Send a bookmark after the objects that exist.
    initial_events_end: bool = False
    seconds: float = 1800.0


class Watch:
    """The watch of one client on one collection."""

    def __init__(
        self,
        store: Store,
        signals: ChangeSignals,
        resource: Resource,
        namespace: str,
        selection: ObjectSelection,
        *,
        line_writer: LineWriter | None = None,
    ) -> None:
        """Watch the selected objects; *line_writer* makes the lines if stored bytes do not do."""
        self._store = store
        self._table = store.table(resource.storage)
        self._signal = signals.of(resource.storage)
        self._resource = resource
        self._namespace = namespace
        self._selection = selection
        self._line_writer = line_writer
        #: Whether this watch sends every event as it is stored; these watches share the bytes.
        self._is_shared = line_writer is None and not namespace and selection.everything
        self._position = 0

    async def stream(self, options: WatchOptions) -> AsyncIterator[bytes]:
        """Lines, many at a time, until the time is over or the position is compacted."""
        loop = asyncio.get_running_loop()
        end = loop.time() + options.seconds
        if options.since is None:
            self._position = self._store.durable_version
            for lines in self._initial_events():
                yield lines
            if options.initial_events_end:
                yield self._bookmark(_INITIAL_EVENTS_END)
        else:
            self._position = options.since
        bookmark_at = loop.time() + _BOOKMARK_INTERVAL
        while True:
            try:
                lines = self._new_lines()
            except StatusError as error:
                yield line_of(ERROR, encode(error.body()))
                return
            if lines:
                yield lines
                continue
            now = loop.time()
            if now >= end:
                if options.bookmarks:
                    yield self._bookmark()
                return
            if options.bookmarks and now >= bookmark_at:
                bookmark_at = now + _BOOKMARK_INTERVAL
                yield self._bookmark()
            until = min(end, bookmark_at) if options.bookmarks else end
            await self._signal.wait(until - now)

    def _initial_events(self) -> Iterator[bytes]:
        """The objects that exist, as if they had just been added."""
        existing = self._table.as_of(self._position, self._namespace)
        records = [each for each in existing if self._selection.matches(each)]
        for start in range(0, len(records), _INITIAL_BATCH):
            batch = records[start : start + _INITIAL_BATCH]
            yield b"".join([self._line(ADDED, each) for each in batch])

    def _new_lines(self) -> bytes:
        """The lines after the position, which moves on; empty if no event concerns this watch."""
        until = self._store.durable_version
        if until <= self._position and self._position >= self._table.compacted:
            return b""
        if self._is_shared:
            return self._shared_lines(until)
        events = self._table.events_since(self._position)
        lines = [self._event_line(each) for each in events if each.version <= until]
        self._position = max(self._position, until)
        return b"".join(lines)

    def _shared_lines(self, until: int) -> bytes:
        """The lines up to a version, joined once for all watches at the same position."""
        start, end, lines = self._signal.last_batch
        if start != self._position or end != until:
            events = self._table.events_since(self._position)
            lines = b"".join([each.line for each in events if each.version <= until])
            self._signal.last_batch = (self._position, until, lines)
        self._position = max(self._position, until)
        return lines

    def _event_line(self, event: WatchEvent) -> bytes:
        """The line of an event for a selective watch.

        An object that begins to match the selection is added, one that ceases to is deleted.
        """
        record, before = event.record, event.before
        if self._namespace and record.key.namespace != self._namespace:
            return b""
        matched = before is not None and self._selection.matches(before)
        if event.type != DELETED and self._selection.matches(record):
            event_type = MODIFIED if matched else ADDED
            if self._line_writer is None and event_type == event.type:
                return event.line
            return self._line(event_type, record)
        if not matched or before is None:
            return b""
        if event.type == DELETED:
            return event.line if self._line_writer is None else self._line(DELETED, record)
        return self._line(DELETED, _with_version(before, record.version))

    def _line(self, event_type: str, record: ObjectVersion) -> bytes:
        if self._line_writer is None:
            return line_of(event_type, record.data)
        return self._line_writer(event_type, record)

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._position)}
        metadata["creationTimestamp"] = None
        if annotations:
            metadata["annotations"] = annotations
        resource = self._resource
        item = {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": metadata}
        return line_of(BOOKMARK, encode(item))


def _with_version(record: ObjectVersion, version: int) -> ObjectVersion:
    """An earlier state of an object with the version at which it ceased to match."""
    item = record.object()
    item["metadata"]["resourceVersion"] = str(version)
    return ObjectVersion(record.key, version, encode(item), record.labels, record.fields)
