"""Writes a history: a folder of segments, each of which can be read without the ones before it.

What happened is collected, and its records are made and written together, so that each is cheap.
A segment that has become long is followed by a new one, which begins with a checkpoint; then the
oldest segments are deleted as far as the limits ask for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from podium import __version__
from podium.errors import InputError
from podium.history.deltas import changed_fields, delta
from podium.history.frames import SegmentWriter
from podium.history.records import Changed, Dropped, FieldsChanged, Put, Record
from podium.history.trimming import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from podium.objects.kinds.meta import Object

SUFFIX: Final = ".history"
_MIB: Final = 1 << 20
_encoder: Final = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long segments and the whole history become."""

    #: A segment of so many records, or of so many bytes, is followed by a new one; but not before
    #: it is four times as long as its checkpoint.
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
    """Appends records to a folder, as a segment of its own."""

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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._number = max((number for number, _ in segments_in(self.folder)), default=0)
            self._segment = self._begin(empty=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"no history can be written: {reason}", where=str(folder)) from None

    def _begin(self, *, empty: bool) -> SegmentWriter:
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
        return SegmentWriter(self.folder / f"{self._number:06}{SUFFIX}", header)

    # Records ----------------------------------------------------------------------------------

    def change(self, at: float, kind: str, old: Object | None, new: Object | None) -> None:
        """Write a change of an object: added without *old*, deleted without *new*."""
        if old is not None or new is not None:
            self.write(_Change(at, kind, old, new, self._annotations))

    def write(self, record: Record | Unwritten) -> None:
        """Write a record, together with the next ones."""
        self._batch.append(record)
        if len(self._batch) >= self._limits.batch_records:
            self.flush()

    def flush(self) -> None:
        """Hand what was collected to the system: a program killed later loses none of it."""
        batch, self._batch = self._batch, []
        if batch:
            self._records += len(batch)
            self._segment.append(_encoder.encode([each.record() for each in batch]))

    # Segments ---------------------------------------------------------------------------------

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the segment is long enough to be followed by another one."""
        limits = self._limits
        long = self._records >= limits.segment_records or self._segment.size >= limits.segment_bytes
        return long and self._records >= 4 * self._checkpoint_records

    def start_segment(
        self, checkpoint: Iterable[Record], about: Mapping[str, Any] | None = None
    ) -> None:
        """Begin a new segment with the records of a checkpoint, and delete the oldest ones.

        *about* changes what the headers say from now on.
        """
        self.flush()
        self._about.update(about or {})
        last = self._segment
        self._records = 0
        self._segment = self._begin(empty=False)
        for record in checkpoint:
            self.write(record)
        self.flush()
        self._checkpoint_records, self._records = self._records, 0
        last.close()
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
        self._segment.sync()
        self._segment.close()

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
