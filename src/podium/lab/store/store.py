"""Where the lab keeps its objects: encoded once, versioned by one counter, with a short history.

An object is kept as the JSON bytes that every reader is sent, beside the few facts that selectors
ask for. Dictionaries are decoded afresh for whoever wants to change one, so nobody can change what
is kept. Each write becomes an `Event` in the history of its resource; watchers hold a position in
it, and a list can be read as it was at an earlier version by undoing what came after.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, Protocol

from podium.lab.api.encoding import decode, encode
from podium.lab.api.status import JsonDict, gone

#: How many events of a resource are remembered; the oldest half goes when there are more.
HISTORY = 32_768

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Key(NamedTuple):
    """Where an object is: its namespace, empty for objects of the cluster, and its name."""

    namespace: str
    name: str


class Record:
    """One version of one object, never changed."""

    __slots__ = ("data", "fields", "key", "labels", "version")

    def __init__(
        self,
        key: Key,
        version: int,
        data: bytes,
        labels: Mapping[str, str],
        fields: Mapping[str, str],
    ) -> None:
        """Keep the encoded *data* with the labels and fields that selectors may ask for."""
        self.key = key
        self.version = version
        self.data = data
        self.labels = labels
        self.fields = fields

    def object(self) -> JsonDict:
        """A fresh copy."""
        return decode(self.data)


class Event:
    """Something that happened to an object: what it was before, and what it is now."""

    __slots__ = ("_line", "before", "record", "type", "version")

    def __init__(self, type: str, record: Record, before: Record | None) -> None:  # noqa: A002
        """An event of *type*; a deleted object is shown as it was at last, with a new version."""
        self.type = type
        self.record = record
        self.before = before
        self.version = record.version
        self._line: bytes | None = None

    @property
    def line(self) -> bytes:
        """The line that watchers are sent, made once for all of them."""
        if self._line is None:
            self._line = line_of(self.type, self.record.data)
        return self._line


def line_of(type: str, data: bytes) -> bytes:  # noqa: A002
    """One line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), data)


_version = attrgetter("version")


@dataclass(slots=True)
class Table:
    """The objects of one resource, and what happened to them lately."""

    history_limit: int = HISTORY
    records: dict[Key, Record] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)
    #: Events up to this version are forgotten.
    compacted: int = 0
    #: Called after each event; must not write.
    listeners: list[Callable[[], None]] = field(default_factory=list)
    _sorted: list[Key] | None = None
    _by_namespace: dict[str, dict[Key, Record]] = field(default_factory=dict)

    def keys(self) -> list[Key]:
        """All keys in order; not to be changed."""
        if self._sorted is None:
            self._sorted = sorted(self.records)
        return self._sorted

    def within(self, namespace: str) -> Mapping[Key, Record]:
        """The objects of one namespace, in no particular order."""
        return self._by_namespace.get(namespace, {})

    def put(self, event: Event) -> None:
        """Take an event in."""
        record = event.record
        key = record.key
        if event.type == DELETED:
            del self.records[key]
            home = self._by_namespace[key.namespace]
            del home[key]
            if not home:
                del self._by_namespace[key.namespace]
            self._sorted = None
        else:
            if event.type == ADDED:
                self._sorted = None
            self.load(record)
        self.history.append(event)
        if len(self.history) > self.history_limit:
            self.compact(self.history[len(self.history) // 2].version)
        for listener in self.listeners:
            listener()

    def load(self, record: Record) -> None:
        """Keep a record without an event."""
        self.records[record.key] = record
        home = self._by_namespace.get(record.key.namespace)
        if home is None:
            home = self._by_namespace[record.key.namespace] = {}
        home[record.key] = record

    def compact(self, version: int) -> None:
        """Forget what happened up to *version*."""
        del self.history[: bisect_right(self.history, version, key=_version)]
        self.compacted = max(self.compacted, version)

    def since(self, version: int) -> list[Event]:
        """What happened after *version*; refuses when that is no longer known."""
        if version < self.compacted:
            raise gone(version, self.compacted)
        history = self.history
        if not history or history[-1].version <= version:
            return []
        return history[bisect_right(history, version, key=_version) :]

    def ordered(self, namespace: str = "", *, start: Key | None = None) -> Iterator[Record]:
        """Records in the order of their keys, from *start* on."""
        if namespace:
            home = self.within(namespace)
            keys = sorted(home)
        else:
            keys = self.keys()
        records = self.records
        for key in keys if start is None else keys[bisect_left(keys, start) :]:
            yield records[key]

    def as_of(
        self, version: int, namespace: str = "", *, start: Key | None = None
    ) -> Iterator[Record]:
        """Records in order as they were at *version*; refuses when that is no longer known."""
        undone: dict[Key, Record | None] = {}
        for event in reversed(self.since(version)):
            undone[event.record.key] = event.before
        if not undone:
            yield from self.ordered(namespace, start=start)
            return
        lost = [
            each
            for key, each in undone.items()
            if each is not None
            and key not in self.records
            and (not namespace or key.namespace == namespace)
            and (start is None or key >= start)
        ]
        kept = self.ordered(namespace, start=start)
        then = [undone.get(each.key, each) for each in kept]
        yield from sorted((each for each in [*then, *lost] if each), key=attrgetter("key"))


class Journal(Protocol):
    """Who writes changes down for good."""

    #: The last version that is on disk.
    written: int
    #: Called when that has become a later one.
    listeners: list[Callable[[], None]]

    def note(self, resource: str, event: Event) -> None:
        """Take over an event; it is durable some time later."""

    def attach(self, loop: AbstractEventLoop) -> None:
        """Call the listeners in this loop."""

    async def durable(self) -> None:
        """Wait until everything noted so far is durable."""


class Store:
    """All objects, by the names of their resources."""

    def __init__(self, *, history: int = HISTORY) -> None:
        """An empty store that remembers *history* events per resource."""
        self._history = history
        self._tables: dict[str, Table] = {}
        self._forgotten = 0
        self.version = 1
        self.journal: Journal | None = None

    @property
    def durable(self) -> int:
        """The last version that is sure to stay: what watchers may be told of."""
        return self.version if self.journal is None else self.journal.written

    def table(self, resource: str) -> Table:
        """The objects of one resource, by its qualified name."""
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table(self._history, compacted=self._forgotten)
        return found

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Each resource that has or had objects."""
        yield from list(self._tables.items())

    def get(self, resource: str, key: Key) -> Record | None:
        """The record, if there is one."""
        return self.table(resource).records.get(key)

    def put(self, resource: str, key: Key, item: JsonDict, fields: Mapping[str, str]) -> Record:
        """Write *item*, whose resourceVersion is set to that of the write."""
        table = self.table(resource)
        before = table.records.get(key)
        record = self._next(key, item, fields)
        event = Event(ADDED if before is None else MODIFIED, record, before)
        self._commit(resource, table, event)
        return record

    def drop(self, resource: str, key: Key, item: JsonDict, fields: Mapping[str, str]) -> Record:
        """Delete an object that is there; *item* is what it was at last."""
        table = self.table(resource)
        before = table.records[key]
        record = self._next(key, item, fields)
        self._commit(resource, table, Event(DELETED, record, before))
        return record

    def _next(self, key: Key, item: JsonDict, fields: Mapping[str, str]) -> Record:
        self.version += 1
        metadata = item["metadata"]
        metadata["resourceVersion"] = str(self.version)
        labels = dict(metadata.get("labels") or ())
        return Record(key, self.version, encode(item), labels, fields)

    def _commit(self, resource: str, table: Table, event: Event) -> None:
        if self.journal is not None:
            self.journal.note(resource, event)
        table.put(event)

    def load(self, resource: str, record: Record) -> None:
        """Take in a record from before."""
        self.table(resource).load(record)

    def resume(self, version: int) -> None:
        """Go on counting after *version*; nothing is remembered of the time before."""
        self.version = self._forgotten = max(self.version, version)
        for table in self._tables.values():
            table.compacted = self.version
