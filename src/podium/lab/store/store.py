"""The store of the lab: encoded objects with one version counter, and a history for watches.

An object is stored as the JSON that every reader is sent, with its labels and the fields that
selectors can ask for. Reading an object decodes it anew, so a change of it never changes the store.
Each write adds a `WatchEvent` to the history of its resource. A watch is a position in that
history, and a list of an earlier version is made by undoing the events after it.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol

from podium.lab.api.encoding import decode, encode
from podium.lab.api.status import gone
from podium.objects.kinds.meta import JsonObject

#: The most events in the history of a resource; beyond it the older half is dropped.
HISTORY_LIMIT = 16_384
#: The most bytes of objects in the history of a resource; beyond it the older half is dropped.
HISTORY_BYTES = 8 * 1024 * 1024

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Key(NamedTuple):
    """The namespace, empty for objects of the cluster, and the name of an object."""

    namespace: str
    name: str


class ObjectVersion:
    """One version of one object, never changed."""

    __slots__ = ("_data", "_fields", "key", "labels", "version")

    def __init__(
        self,
        key: Key,
        version: int,
        data: bytes,
        labels: Mapping[str, str],
        fields: Mapping[str, str],
    ) -> None:
        """Store the encoded *data* with the labels and fields for selectors."""
        self.key = key
        self.version = version
        self._data = data
        self.labels = labels
        self._fields = fields

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields that selectors can ask for, empty ones left out."""
        return self._fields

    @property
    def data(self) -> bytes:
        """The encoded object."""
        return self._data

    def object(self) -> JsonObject:
        """The decoded object; the caller may change it."""
        return decode(self.data)


class WatchEvent:
    """A write to an object: its type, and the records before and after it."""

    __slots__ = ("before", "record", "type", "version")

    def __init__(self, type: str, record: ObjectVersion, before: ObjectVersion | None) -> None:  # noqa: A002
        """An event of *type*; the record of a deletion is the last state with a new version."""
        self.type = type
        self.record = record
        self.before = before
        self.version = record.version

    @property
    def line(self) -> bytes:
        """The event as a line of a watch response."""
        return line_of(self.type, self.record.data)


def line_of(type: str, data: bytes) -> bytes:  # noqa: A002
    """A line of a watch response."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), data)


_version = attrgetter("version")


@dataclass(slots=True)
class Table:
    """The records of one resource, and the history of writes to them."""

    history_limit: int = HISTORY_LIMIT
    history_limit_bytes: int = HISTORY_BYTES
    records: dict[Key, ObjectVersion] = field(default_factory=dict)
    history: list[WatchEvent] = field(default_factory=list)
    #: The bytes of the objects in the history.
    history_bytes: int = 0
    #: Events up to this version are not in the history.
    compacted: int = 0
    #: Called after each write; must not write themselves.
    listeners: list[Callable[[], None]] = field(default_factory=list)
    _sorted: list[Key] | None = None
    _by_namespace: dict[str, dict[Key, ObjectVersion]] = field(default_factory=dict)

    def keys(self) -> list[Key]:
        """All keys in order; the list must not be changed."""
        if self._sorted is None:
            self._sorted = sorted(self.records)
        return self._sorted

    def in_namespace(self, namespace: str) -> Mapping[Key, ObjectVersion]:
        """The records of one namespace, in no particular order."""
        return self._by_namespace.get(namespace, {})

    def apply(self, event: WatchEvent) -> None:
        """Store or remove the record of an event, and add the event to the history."""
        record = event.record
        key = record.key
        if event.type == DELETED:
            del self.records[key]
            records = self._by_namespace[key.namespace]
            del records[key]
            if not records:
                del self._by_namespace[key.namespace]
            self._sorted = None
        else:
            if event.type == ADDED:
                self._sorted = None
            self.load(record)
        self.history.append(event)
        self.history_bytes += len(record.data)
        if len(self.history) > self.history_limit:
            self.compact(self.history[len(self.history) // 2].version)
        if self.history_bytes > self.history_limit_bytes:
            self._compact_bytes(self.history_limit_bytes // 2)
        for listener in self.listeners:
            listener()

    def load(self, record: ObjectVersion) -> None:
        """Store a record without an event."""
        key = record.key
        self.records[key] = record
        in_namespace = self._by_namespace.get(key.namespace)
        if in_namespace is None:
            in_namespace = self._by_namespace[key.namespace] = {}
        in_namespace[key] = record

    def forget_order(self) -> None:
        """Sort the keys again when they are next asked for."""
        self._sorted = None

    def compact(self, version: int) -> None:
        """Drop the events up to *version* from the history."""
        dropped = bisect_right(self.history, version, key=_version)
        self.history_bytes -= sum(len(each.record.data) for each in self.history[:dropped])
        del self.history[:dropped]
        self.compacted = max(self.compacted, version)

    def _compact_bytes(self, limit: int) -> None:
        """Drop the oldest events until *limit* bytes are left; the newest event always stays."""
        left = self.history_bytes
        for event, following in pairwise(self.history):
            left -= len(event.record.data)
            if left <= limit or following is self.history[-1]:
                self.compact(event.version)
                return

    def events_since(self, version: int) -> list[WatchEvent]:
        """The events after *version*; 410 if the history does not reach back so far."""
        if version < self.compacted:
            raise gone(version, self.compacted)
        history = self.history
        if not history or history[-1].version <= version:
            return []
        return history[bisect_right(history, version, key=_version) :]

    def ordered(self, namespace: str = "", *, start: Key | None = None) -> Iterator[ObjectVersion]:
        """Records in the order of their keys, from *start* on."""
        keys = sorted(self.in_namespace(namespace)) if namespace else self.keys()
        records = self.records
        for key in keys if start is None else keys[bisect_left(keys, start) :]:
            yield records[key]

    def as_of(
        self, version: int, namespace: str = "", *, start: Key | None = None
    ) -> Iterator[ObjectVersion]:
        """Records in order as they were at *version*; 410 if the history is too short."""
        undone: dict[Key, ObjectVersion | None] = {}
        for event in reversed(self.events_since(version)):
            undone[event.record.key] = event.before
        if not undone:
            yield from self.ordered(namespace, start=start)
            return
        deleted = [
            each
            for key, each in undone.items()
            if each is not None
            and key not in self.records
            and (not namespace or key.namespace == namespace)
            and (start is None or key >= start)
        ]
        kept = self.ordered(namespace, start=start)
        then = [undone.get(each.key, each) for each in kept]
        yield from sorted((each for each in [*then, *deleted] if each), key=attrgetter("key"))


class EventJournal(Protocol):
    """Writes events to disk, some time after they happened."""

    #: The last version that is on disk.
    durable_version: int
    #: Why nothing can be written now; empty while it can.
    failure: str
    #: Called when `durable_version` has increased.
    listeners: list[Callable[[], None]]

    def append(self, resource: str, event: WatchEvent) -> None:
        """Add an event that is to be written."""

    def attach(self, loop: AbstractEventLoop) -> None:
        """Call the listeners in this loop."""

    async def wait_durable(self) -> None:
        """Wait until all events that were added are on disk."""


class Store:
    """The tables of all resources, by qualified name, and their common version counter."""

    def __init__(self, *, history: int = HISTORY_LIMIT) -> None:
        """An empty store; the history of each resource has at most *history* events."""
        self._history_limit = history
        self._tables: dict[str, Table] = {}
        self._compacted = 0
        self.version = 1
        self.journal: EventJournal | None = None

    @property
    def durable_version(self) -> int:
        """The last version that survives a crash; watches see nothing after it."""
        return self.version if self.journal is None else self.journal.durable_version

    def table(self, resource: str) -> Table:
        """The table of a resource, by its qualified name."""
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table(self._history_limit, compacted=self._compacted)
        return found

    def tables(self) -> Iterator[tuple[str, Table]]:
        """The names and tables of all resources that were ever used."""
        yield from list(self._tables.items())

    def get(self, resource: str, key: Key) -> ObjectVersion | None:
        """The record of an object, if it exists."""
        return self.table(resource).records.get(key)

    def put(
        self, resource: str, key: Key, item: JsonObject, fields: Mapping[str, str]
    ) -> ObjectVersion:
        """Store *item* and set its resource version."""
        table = self.table(resource)
        before = table.records.get(key)
        record = self._new_record(key, item, fields)
        event = WatchEvent(ADDED if before is None else MODIFIED, record, before)
        self._commit(resource, table, event)
        return record

    def delete(
        self, resource: str, key: Key, item: JsonObject, fields: Mapping[str, str]
    ) -> ObjectVersion:
        """Delete an object that exists; *item* is its last state."""
        table = self.table(resource)
        before = table.records[key]
        record = self._new_record(key, item, fields)
        self._commit(resource, table, WatchEvent(DELETED, record, before))
        return record

    def _new_record(self, key: Key, item: JsonObject, fields: Mapping[str, str]) -> ObjectVersion:
        version = self.next_version()
        metadata = item["metadata"]
        metadata["resourceVersion"] = str(version)
        labels = dict(metadata.get("labels") or ())
        return ObjectVersion(key, version, encode(item), labels, fields)

    def _commit(self, resource: str, table: Table, event: WatchEvent) -> None:
        if self.journal is not None:
            self.journal.append(resource, event)
        table.apply(event)

    def load(self, resource: str, record: ObjectVersion) -> None:
        """Store a record that was read from disk."""
        self.table(resource).load(record)

    def load_new(self, resource: str, records: Iterable[ObjectVersion]) -> None:
        """Store records with versions from `next_version`, without any event about them."""
        table = self.table(resource)
        for record in records:
            table.load(record)
        table.compact(self.version)
        table.forget_order()

    def next_version(self) -> int:
        """A version that no object has had."""
        self.version += 1
        return self.version

    def resume(self, version: int) -> None:
        """Continue the versions after *version*; there is no history of the time before."""
        self.version = self._compacted = max(self.version, version)
        for table in self._tables.values():
            table.compacted = self.version
