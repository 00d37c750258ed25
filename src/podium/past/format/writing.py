"""Writes a history: a folder of segments, each of which can be read without the ones before it.

What happened is collected, and its records are made and written together, so that each is cheap. A
segment that has become long is followed by a new one, which begins with a checkpoint. Then the
oldest segments are deleted, as far as the limits ask for it. Of an object a history keeps what a
snapshot keeps, and its resourceVersion.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from podium import __version__
from podium.errors import InputError
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.kept_fields import ANNOTATIONS
from podium.past.format.deltas import changed_fields, delta
from podium.past.format.frames import SegmentWriter
from podium.past.format.records import Changed, Dropped, FieldsChanged, Put, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from podium.objects.kinds.meta import Object, Value


T = TypeVar("T", bound="Object")


def recorded(kind: str, item: T, annotations: frozenset[str] = frozenset()) -> T:
    """The object without annotations that no rule reads; *annotations* are read by rules of users.

    An object that has nothing to be taken out is returned as it is.
    """
    given = item.metadata.annotations
    if given:
        kept = {
            key: text for key, text in given.items() if key in ANNOTATIONS or key in annotations
        }
        if len(kept) != len(given):
            item = replace(item, metadata=replace(item.metadata, annotations=kept or None))
    known = KINDS[kind]
    if known.template is not None:
        return _without_templates(item)
    return item if known.trim is None else known.trim(item)


def _without_templates(workload: T) -> T:
    """The workload alone: its pods exist, so that templates do not matter."""
    spec: Value = workload.spec  # type: ignore[attr-defined]
    names = {"template", "volume_claim_templates"}.intersection(spec.__struct_fields__)
    kept = replace(spec, **dict.fromkeys(names))
    return replace(workload, spec=kept)


logger = logging.getLogger(__name__)

SUFFIX: Final = ".history"
#: Seconds until a disk that failed is tried again, at first and at most.
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_MIB: Final = 1 << 20
_encoder: Final = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long segments and the whole history become."""

    #: A segment of so many records, or of so many bytes, is followed by a new one, once it is four
    #: times as long as its checkpoint.
    segment_records: int = 50_000
    segment_bytes: int = 64 * _MIB
    #: The oldest segments are deleted while all are longer, or once they are older.
    total_bytes: int = 1024 * _MIB
    age_seconds: float = float("inf")
    #: Records are written when so many have come together; `flush` writes them earlier.
    batch_records: int = 256


class Unwritten(msgspec.Struct, frozen=True, gc=False):
    """What happened, with all that its record is made from.

    Making records together, when they are written, takes a fraction of the time of making each in
    the middle of other work. What this holds on to must not change until then.
    """

    def record(self) -> Record:
        """The record."""
        raise NotImplementedError


class _Change(Unwritten, frozen=True):
    """A change of an object."""

    at: float
    kind: str
    old: Object | None
    new: Object | None
    annotations: frozenset[str]

    def record(self) -> Record:
        old, new, kind = self.old, self.new, self.kind
        if new is None:
            assert old is not None
            return Dropped(self.at, kind, old.key)
        new = recorded(kind, new, self.annotations)
        if old is None or old.metadata.uid != new.metadata.uid:
            return _put(self.at, kind, new)
        if kind == "Pod":
            return FieldsChanged(self.at, kind, new.key, changed_fields(old, new))
        return Changed(self.at, kind, new.key, delta(recorded(kind, old, self.annotations), new))


class HistoryWriter:
    """Appends records to a folder, as a segment of its own.

    When the disk is full, or fails otherwise, that is logged once and records are dropped. From
    then on a checkpoint is wanted: the segment that begins with it has the whole cluster again.
    """

    def __init__(
        self,
        folder: str | Path,
        about: Mapping[str, Any] | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  immutable
        annotations: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin a segment with an empty cluster in the *folder*, which is made if it is missing.

        *about* is added to the header of every segment. Of the annotations of objects, those that
        built-in rules read are kept, and those that are named by *annotations*.
        """
        self.folder = Path(folder)
        self._about = dict(about or {})
        self._limits = limits
        self._annotations = annotations
        self._clock = clock
        self._batch: list[Record | Unwritten] = []
        self._records = self._checkpoint_records = 0
        #: Why nothing can be written; empty while it can.
        self.failure = ""
        self._next_try, self._pause = 0.0, _FIRST_PAUSE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._number = max((number for number, _ in segments_in(self.folder)), default=0)
            self._segment = self._begin(empty=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"no history can be written: {reason}", where=str(folder)) from None

    def _begin(self, *, empty: bool) -> SegmentWriter:
        """Create the next segment; another program may have taken its number."""
        while True:
            self._number += 1
            header = {
                **self._about,
                "apiVersion": "podium/v1",
                "kind": "History",
                "writtenBy": f"podium {__version__}",
                "segment": self._number,
                "started": self._clock(),
                "empty": empty,
            }
            with suppress(FileExistsError):
                return SegmentWriter(self.folder / f"{self._number:06}{SUFFIX}", header)

    # Records ----------------------------------------------------------------------------------

    def change(self, at: float, kind: str, old: Object | None, new: Object | None) -> None:
        """Write a change of an object: added without *old*, deleted without *new*."""
        if old is not None or new is not None:
            self.write(_Change(at, kind, old, new, self._annotations))

    def write(self, record: Record | Unwritten) -> None:
        """Write a record, together with the next ones."""
        if self.failure:
            return
        self._batch.append(record)
        if len(self._batch) >= self._limits.batch_records:
            self.flush()

    def flush(self) -> None:
        """Hand what was collected to the system: a program killed later loses none of it."""
        try:
            self._flush()
        except OSError as error:
            self._fail(error)

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            self._records += len(batch)
            self._segment.append(_encoder.encode([each.record() for each in batch]))

    def _fail(self, error: OSError) -> None:
        reason = (error.strerror or str(error)).lower()
        if not self.failure:
            logger.warning("nothing is recorded in %s until it can be: %s", self.folder, reason)
        self.failure = reason
        self._batch.clear()
        self._next_try = self._clock() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    # Segments ---------------------------------------------------------------------------------

    @property
    def wants_checkpoint(self) -> bool:
        """Whether another segment shall follow: this one is long, or could not be written."""
        if self.failure:
            return self._clock() >= self._next_try
        limits = self._limits
        long = self._records >= limits.segment_records or self._segment.size >= limits.segment_bytes
        return long and self._records >= 4 * self._checkpoint_records

    def start_segment(
        self, checkpoint: Iterable[Record], about: Mapping[str, Any] | None = None
    ) -> None:
        """Begin a new segment with the records of a checkpoint, and delete the oldest ones.

        *about* changes what the headers say from now on.
        """
        self._about.update(about or {})
        had_failed, self.failure = self.failure, ""
        last = self._segment
        try:
            self._flush()
            self._records = 0
            self._segment = self._begin(empty=False)
            for record in checkpoint:
                self._batch.append(record)
                if len(self._batch) >= self._limits.batch_records:
                    self._flush()
            self._flush()
            last.close()
        except OSError as error:
            self.failure = had_failed
            if self._segment is not last:
                self._segment.discard()
                self._segment = last
            self._fail(error)
            return
        self._checkpoint_records, self._records = self._records, 0
        self._pause = _FIRST_PAUSE
        if had_failed:
            logger.warning("recording in %s goes on with a new segment", self.folder)
        with suppress(OSError):  # another program may have deleted some of them
            self._delete_old()

    def put_record(self, at: float, kind: str, item: Object) -> Put:
        """The record of an object in a checkpoint."""
        kept = recorded(kind, item, self._annotations)
        return _put(at, kind, kept)

    def _delete_old(self) -> None:
        """Delete the oldest segments that are beyond the limits; the current one stays."""
        found = [path for number, path in segments_in(self.folder) if number < self._number]
        sizes = {path: path.stat().st_size for path in found}
        total = sum(sizes.values()) + self._segment.size
        oldest = self._clock() - self._limits.age_seconds
        for path in found:
            if total <= self._limits.total_bytes and path.stat().st_mtime >= oldest:
                break
            path.unlink()
            total -= sizes[path]

    def close(self) -> None:
        """Write what was collected, to the disk, and close the segment."""
        self.flush()
        try:
            self._segment.sync()
            self._segment.close()
        except OSError as error:
            self._fail(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _put(at: float, kind: str, item: Object) -> Put:
    """The record of an object, which is encoded when the record is."""
    return Put(at, kind, cast("msgspec.Raw", item))


def segments_in(folder: Path) -> list[tuple[int, Path]]:
    """The numbers and files of the segments in a folder, in order."""
    found = (path for path in folder.iterdir() if path.name.endswith(SUFFIX))
    numbered = ((path.name.removesuffix(SUFFIX), path) for path in found)
    return sorted((int(name), path) for name, path in numbered if name.isdecimal())
