"""A copy of a history without anything that tells whose cluster it comes from.

New names keep the order of the old ones, as in snapshots, so that all must be known before the
first is given: the history is read twice, and no history is anonymized while it is recorded. The
digests of decisions have names in them. Each decision is therefore made again on both sides, and
the copy gets the digest of the renamed one where the original has its own; otherwise the digest of
the copy is 0, and a replay of the copy names that decision as different, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.snapshots.pseudonyms import Pseudonyms
from podium.past.format.deltas import delta
from podium.past.format.frames import SegmentWriter
from podium.past.format.reading import ObjectChange, SegmentStart, Torn
from podium.past.format.records import Changed, Decided, Dropped, GroupDecided, Put
from podium.past.recorder.digest import digest, group_digest, matrix
from podium.past.replay.entry_renaming import EntryRenaming
from podium.past.replay.replay import HistoryReplay, compare, compare_group

if TYPE_CHECKING:
    from pathlib import Path

    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.meta import Object
    from podium.past.format.reading import Entry, History
    from podium.past.format.records import AnyRecord
    from podium.past.replay.replay import RulesOf

#: How many records are written together.
_BATCH: Final = 256
_encoder: Final = msgspec.msgpack.Encoder()


@dataclass(slots=True)
class Copied:
    """What was copied: segments, changes of objects, decisions, and how many of these follow."""

    segments: int = 0
    changes: int = 0
    decisions: int = 0
    #: Decisions that follow again in the original and in the copy.
    equal: int = 0
    #: Decisions that follow in the original only.
    lost: int = 0


def write_anonymized(history: History, folder: Path, rules_of: RulesOf) -> Copied:
    """Write a copy of the *history* with other names to the *folder*, which is made for it."""
    names = Pseudonyms()
    renaming = EntryRenaming(names)
    for entry in history.entries():
        renaming.entry(entry)
    names.assign()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copy = _Copy(folder, EntryRenaming(names), rules_of)
        try:
            for entry in history.entries():
                copy.add(entry)
        finally:
            copy.close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"no history can be written: {reason}", where=str(folder)) from None
    return copy.copied


class _Copy:
    """Both histories, followed side by side, and the file that is written."""

    def __init__(self, folder: Path, renaming: EntryRenaming, rules_of: RulesOf) -> None:
        self._folder, self._renaming = folder, renaming
        self._theirs, self._ours = HistoryReplay(rules_of), HistoryReplay(rules_of)
        self._segment: SegmentWriter | None = None
        self._batch: list[AnyRecord] = []
        #: The renamed objects so far, by kind and key.
        self._known: dict[str, dict[str, Object]] = defaultdict(dict)
        self.copied = Copied()

    def add(self, entry: Entry) -> None:
        """Follow an entry, and write it under its new names."""
        if isinstance(entry, Torn):
            return
        renamed = self._renaming.entry(entry)
        if isinstance(entry, SegmentStart):
            assert isinstance(renamed, SegmentStart)
            self.close()
            self._known.clear()
            self._segment = SegmentWriter(self._folder / entry.path.name, renamed.header)
            self.copied.segments += 1
        elif isinstance(renamed, ObjectChange):
            self.copied.changes += 1
            renamed = self._object_change(renamed)
        elif isinstance(entry, GroupDecided):
            assert isinstance(renamed, GroupDecided)
            self._write(self._group(entry, renamed))
            return
        elif isinstance(entry, Decided):
            assert isinstance(renamed, Decided)
            if not entry.group:  # otherwise it was written with its group
                self._write(self._decided(entry, renamed))
            return
        elif not isinstance(renamed, SegmentStart | Torn):
            self._write(renamed)
        self._theirs.apply(entry)
        self._ours.apply(renamed)

    def _object_change(self, change: ObjectChange) -> ObjectChange:
        """The change, with the renamed object before it, after its record was written."""
        at, kind, new = change.time, change.kind, change.new
        known = self._known[kind]
        old = known.get(change.key)
        if new is None:
            known.pop(change.key, None)
            self._write(Dropped(at, kind, change.key))
        else:
            known[change.key] = new
            if old is None or old.metadata.uid != new.metadata.uid:
                self._write(Put(at, kind, cast("msgspec.Raw", new)))
            else:
                self._write(Changed(at, kind, change.key, delta(old, new)))
        return ObjectChange(at, kind, old, new)

    def _decided(self, entry: Decided, renamed: Decided) -> Decided:
        """The decision with the digest that it has under the new names."""
        self.copied.decisions += 1
        if entry.extenders:
            self._theirs.apply(entry)
            self._ours.apply(renamed)
            return replace(renamed, digest=0, matrix=None)
        recording = entry.matrix is not None
        theirs = self._theirs.derive(entry, recording=recording)
        ours = self._ours.derive(renamed, recording=recording)
        if compare(entry, theirs) is not None:
            return replace(renamed, digest=0)
        if not _alike(renamed, ours):
            self.copied.lost += 1
            return replace(renamed, digest=0)
        self.copied.equal += 1
        return replace(renamed, digest=digest(ours), matrix=matrix(ours) if recording else None)

    def _group(self, entry: GroupDecided, renamed: GroupDecided) -> GroupDecided:
        """The cycle of a group with the digests that it has under the new names."""
        number = 0
        if entry.extenders:
            self._theirs.apply(entry)
            self._ours.apply(renamed)
        else:
            recording = any(each.matrix is not None for each in entry.members)
            theirs = self._theirs.derive_group(entry, recording=recording)
            ours = self._ours.derive_group(renamed, recording=recording)
            if not compare_group(entry, theirs) and ours.code == entry.code:
                number = group_digest(ours)
        pairs = zip(entry.members, renamed.members, strict=True)
        members = tuple(self._decided(*pair) for pair in pairs)
        return replace(renamed, digest=number, members=members)

    def _write(self, record: AnyRecord) -> None:
        self._batch.append(record)
        if len(self._batch) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch and self._segment is not None:
            self._segment.append(_encoder.encode(batch))

    def close(self) -> None:
        """Write what was collected, and end the segment."""
        self._flush()
        if self._segment is not None:
            self._segment.sync()
            self._segment.close()
            self._segment = None


def _alike(entry: Decided, decision: Decision) -> bool:
    """Whether a decision is the recorded one, as far as that is recorded without names."""
    return (
        decision.node,
        decision.nodes,
        decision.feasible_count,
        decision.tied,
        decision.consumed,
        decision.dropped,
    ) == (entry.node, entry.nodes, entry.feasible, entry.tied, entry.consumed, entry.dropped)
