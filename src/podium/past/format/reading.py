"""Reads a history: its segments, and what happened in them, in order.

Objects are put together from their deltas. A segment is torn if its program was killed or the disk
was full. It is read up to its last whole record; the next one begins with the whole cluster.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError
from podium.objects.kinds.registry import KINDS
from podium.past.format.deltas import changed, with_fields
from podium.past.format.frames import SegmentReader
from podium.past.format.records import (
    AnyRecord,
    Changed,
    Checkpoint,
    Decided,
    Dropped,
    FieldsChanged,
    GroupDecided,
    Put,
)
from podium.past.format.writing import segments_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod

#: What a record raises that fits neither its kind nor what came before it.
_MALFORMED: Final = (KeyError, AttributeError, TypeError, ValueError, RecursionError)
_records: Final = msgspec.msgpack.Decoder(list[AnyRecord])


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """A segment begins. What was known before does not hold any more."""

    path: Path
    header: dict[str, Any]
    #: Whether the cluster is empty; otherwise its objects and a `Checkpoint` follow.
    empty: bool


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object was added (no old one), changed, or was deleted (no new one)."""

    time: float
    kind: str
    old: Object | None
    new: Object | None

    @property
    def key(self) -> str:
        """The key of the object: `namespace/name`."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found.key


@dataclass(frozen=True, slots=True)
class Torn:
    """A segment ends here although more was written to it, or was about to be."""

    path: Path
    #: Bytes of whole frames.
    read: int
    #: Whether more follows that cannot be read, because bytes were changed.
    damaged: bool = False

    def __str__(self) -> str:
        if self.damaged:
            return f"{self.path.name} is damaged after {self.read} bytes: the rest cannot be read"
        return f"{self.path.name} ends after {self.read} bytes: it was not written to its end"


#: What happened, as a reader of a history sees it.
Entry = SegmentStart | ObjectChange | Torn | AnyRecord


class History:
    """A folder of segments, or one segment."""

    def __init__(self, path: str | Path) -> None:
        """Find the segments; an error if there are none."""
        self.path = Path(path)
        try:
            if self.path.is_dir():
                self.segments = [found for _, found in segments_in(self.path)]
            else:
                self.segments = [self.path]
            if not self.segments:
                hint = "`podium history record` or `podium run --record` writes one"
                raise InputError("has no history in it", where=str(path), hint=hint)
            self.header = self._first_header()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot be read: {reason}", where=str(path)) from None

    def _first_header(self) -> dict[str, Any]:
        for path in self.segments:
            with SegmentReader(path) as reader:
                if reader.header:
                    return reader.header
        raise InputError("has no whole record in it", where=str(self.path))

    def records(self, first: int = 0) -> Iterator[SegmentStart | Torn | AnyRecord]:
        """Everything as it was written, from segment *first* on."""
        for path in self.segments[first:]:
            with SegmentReader(path) as reader:
                if reader.header:
                    yield SegmentStart(path, reader.header, bool(reader.header.get("empty", True)))
                    for part in reader.parts():
                        yield from _decoded(part, path)
                if reader.torn:
                    yield Torn(path, reader.read, reader.damaged)

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """Everything that happened, from segment *first* on, with whole objects.

        A segment whose checkpoint is incomplete says nothing, and is left out.
        """
        builder = _Entries(self.path)
        for record in self.records(first):
            yield from builder.add(record)

    def decisions(self) -> Iterator[Decided]:
        """All decisions, without anything else."""
        return (record for record in self.records() if isinstance(record, Decided))


class SegmentFollower:
    """Reads one segment, and later what was appended to it since."""

    def __init__(self, path: Path) -> None:
        """Open the segment; an error if it is no history."""
        self._reader = SegmentReader(path)
        self._entries = _Entries(path)
        self.header = self._reader.header
        #: Records that were read, and entries that are complete, and not yielded yet.
        self._records: Iterator[SegmentStart | AnyRecord] = iter(self._start())
        self._complete: deque[Entry] = deque()

    def _start(self) -> list[SegmentStart]:
        if not self.header:
            return []
        empty = bool(self.header.get("empty", True))
        return [SegmentStart(self._reader.path, self.header, empty)]

    def entries(self) -> Iterator[Entry]:
        """What was not yielded yet, up to the present end of the file."""
        while True:
            while self._complete:
                yield self._complete.popleft()
            record = next(self._records, None)
            if record is not None:
                self._complete.extend(self._entries.add(record))
                continue
            part = next(self._reader.parts(), None)
            if part is None:
                return
            self._records = iter(_decoded(part, self._reader.path))

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


class _Entries:
    """Puts records together to entries, in order."""

    def __init__(self, where: Path) -> None:
        self._where = where
        self._known: dict[str, dict[str, Object]] = defaultdict(dict)
        #: The entries of a checkpoint until it is complete; None outside of one.
        self._held: list[Entry] | None = None

    def add(self, record: SegmentStart | Torn | AnyRecord) -> Sequence[Entry]:
        """The entries that are complete with this record."""
        entry: Entry
        if isinstance(record, SegmentStart):
            self._known.clear()
            self._held = None if record.empty else []
            entry = record
        elif isinstance(record, Put | Changed | FieldsChanged | Dropped):
            try:
                entry = object_change(record, self._known)
            except InputError as error:
                raise error.located(where=str(self._where)) from None
            except (*_MALFORMED, msgspec.MsgspecError) as error:
                raise InputError(
                    f"a record of {record.kind} cannot be read: {type(error).__name__}: {error}",
                    where=str(self._where),
                ) from error
        else:
            entry = record
        if self._held is None:
            return (entry,)
        if isinstance(entry, Torn):
            self._held = None  # the checkpoint is incomplete, and nothing of it holds
            return (entry,)
        self._held.append(entry)
        if not isinstance(entry, Checkpoint):
            return ()
        held, self._held = self._held, None
        return held


def _decoded(part: bytes, path: Path) -> list[AnyRecord]:
    try:
        found = _records.decode(part)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = "a newer version of podium may have written it"
        raise InputError(f"cannot be read: {error}", where=str(path), hint=hint) from None
    if not any(type(record) is GroupDecided for record in found):
        return found
    return [each for record in found for each in _told(record)]


def _told(record: AnyRecord) -> tuple[AnyRecord, ...]:
    """A record as readers see it: the decisions of a group follow the cycle of the group."""
    return (record, *record.members) if isinstance(record, GroupDecided) else (record,)


def object_change(
    record: Put | Changed | FieldsChanged | Dropped, known: dict[str, dict[str, Object]]
) -> ObjectChange:
    """The change that a record describes; *known* has the objects so far and is kept up to date."""
    objects = known[record.kind]
    if isinstance(record, Put):
        new: Object = KINDS[record.kind].packed_decoder.decode(record.object)
        old = objects.get(new.key)
        objects[new.key] = new
        return ObjectChange(record.time, record.kind, old, new)
    old = objects.get(record.key)
    if old is None:
        raise InputError(f"{record.kind} {record.key} changes before it is there")
    if isinstance(record, Dropped):
        del objects[record.key]
        return ObjectChange(record.time, record.kind, old, None)
    if isinstance(record, FieldsChanged):
        new = with_fields(old, record.fields)
    else:
        new = changed(old, record.delta)
    objects[record.key] = new
    return ObjectChange(record.time, record.kind, old, new)


def decided_pod(plain: dict[str, Any]) -> Pod:
    """The pod that a decision was about, where the decision has it."""
    pod: Pod = KINDS["Pod"].packed_decoder.decode(msgspec.msgpack.encode(plain))
    return pod
