"""A copy of a history without anything that tells whose cluster it comes from.

New names keep the order of the old ones, as in snapshots. All must be known before the first is
given: the history is read twice, and is not anonymized while it is recorded. The digests of
decisions have names in them. Each decision is therefore made again on both sides. Where the
original has its own digest, the copy gets that of the renamed decision. Otherwise the digest of the
copy is 0, and its replay names the decision as different, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec.structs import replace

from podium.cluster.cache.past import Past
from podium.errors import InputError
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.anonymization import anonymize, renamed_profile
from podium.objects.snapshots.kept_fields import ANNOTATIONS
from podium.objects.snapshots.pseudonyms import NAMESPACE, NODE, OBJECT, POD, UID, Pseudonyms
from podium.past.format.deltas import delta
from podium.past.format.frames import SegmentWriter
from podium.past.format.reading import ObjectChange, SegmentStart, Torn, decided_pod
from podium.past.format.records import (
    Bound,
    Changed,
    Checkpoint,
    ClaimMade,
    ClaimWritten,
    Decided,
    Dropped,
    Evicting,
    Forgotten,
    GroupDecided,
    Kept,
    Nominated,
    Profiles,
    Put,
)
from podium.past.recorder.digest import digest, group_digest, matrix
from podium.past.replay.replay import HistoryReplay, compare, compare_group

if TYPE_CHECKING:
    from pathlib import Path

    from podium.cluster.cache.node_tree import TreePosition
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


_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
#: Between the region and the zone in the key of a zone.
_BETWEEN: Final = ":\0:"
#: Errors of bindings are texts of an API server, with names in them.
_REFUSED: Final = "refused"
#: What kept answers gave otherwise names nodes and pods.
_DIFFERED: Final = ("names are left out",)
_encode: Final = msgspec.msgpack.Encoder().encode


class EntryRenaming:
    """Passes entries through pseudonyms: before these are assigned, names are collected."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names

    def entry(self, entry: Entry) -> Entry:
        """The entry under other names; an `ObjectChange` has the new object only."""
        if isinstance(entry, SegmentStart):
            profile = renamed_profile(entry.header.get("profile"), self._names)
            header = {**entry.header, "profile": profile, "anonymized": True}
            return SegmentStart(entry.path, header, entry.empty)
        if isinstance(entry, ObjectChange):
            found = entry.new if entry.new is not None else entry.old
            assert found is not None
            renamed = self._object(entry.kind, found)
            if entry.new is None:
                return ObjectChange(entry.time, entry.kind, renamed, None)
            return ObjectChange(entry.time, entry.kind, None, renamed)
        if isinstance(entry, Decided):
            return self._decided(entry)
        if isinstance(entry, Checkpoint):
            return self._checkpoint(entry)
        return entry if isinstance(entry, Torn) else self._record(entry)

    def _record(self, entry: AnyRecord) -> AnyRecord:  # noqa: PLR0911  one per kind
        if isinstance(entry, Nominated):
            order = None if entry.order is None else tuple(self._nodes(entry.order))
            return replace(entry, pods=dict(self._nominated(entry.pods.items())), order=order)
        if isinstance(entry, Bound):
            pod, node = self._pod(entry.pod), self._node(entry.node)
            error = _REFUSED if entry.error else ""
            return replace(
                entry, pod=pod, uid=self._uid(entry.pod, entry.uid), node=node, error=error
            )
        if isinstance(entry, Forgotten):
            return replace(entry, pod=self._pod(entry.pod), uid=self._uid(entry.pod, entry.uid))
        if isinstance(entry, ClaimMade):
            pod, uid = self._pod(entry.pod), self._uid(entry.pod, entry.pod_uid)
            return replace(entry, pod=pod, pod_uid=uid, uid=self._names.name(UID, entry.uid))
        if isinstance(entry, ClaimWritten):
            uid = self._names.name(UID, entry.uid)
            return replace(entry, claim=self._key(OBJECT, entry.claim), uid=uid)
        if isinstance(entry, Evicting):
            victims = tuple(self._pod(key) for key in entry.victims)
            pod, group = self._pod(entry.pod), self._group(entry.group)
            return replace(entry, pod=pod, group=group, victims=victims)
        if isinstance(entry, Kept):
            return replace(entry, pods=tuple(self._pod(key) for key in entry.pods))
        if isinstance(entry, GroupDecided):
            return self._group_decided(entry)
        assert isinstance(entry, Profiles)
        return replace(entry, profile=renamed_profile(entry.profile, self._names))

    def _object(self, kind: str, item: Object) -> Object:
        plain = msgspec.json.decode(msgspec.json.encode(item))
        metadata = plain["metadata"]
        metadata.pop("generateName", None)
        given = metadata.pop("annotations", {})
        kept = {key: text for key, text in given.items() if key in ANNOTATIONS}
        if kept:
            metadata["annotations"] = kept
        anonymize(kind, plain, self._names)
        found: Object = msgspec.convert(plain, KINDS[kind].type)
        return found

    def _decided(self, entry: Decided) -> Decided:
        plain = entry.object
        if plain is not None:
            plain = msgspec.to_builtins(self._object("Pod", decided_pod(plain)))
        return replace(
            entry,
            differences=_DIFFERED if entry.differences else (),
            pod=self._pod(entry.pod),
            uid=self._uid(entry.pod, entry.uid),
            node=entry.node if entry.node is None else self._node(entry.node),
            nominated=entry.nominated if entry.nominated is None else self._node(entry.nominated),
            object=plain,
            preempts=self._node(entry.preempts),
            victims=tuple(self._pod(key) for key in entry.victims),
            group=self._group(entry.group),
        )

    def _group_decided(self, entry: GroupDecided) -> GroupDecided:
        members = tuple(self._decided(each) for each in entry.members)
        group = self._group(entry.group)
        uid = group if entry.uid == entry.group else self._names.name(UID, entry.uid)
        return replace(entry, group=group, uid=uid, members=members)

    def _checkpoint(self, entry: Checkpoint) -> Checkpoint:
        past = msgspec.msgpack.decode(entry.past, type=Past | None)
        renamed = None if past is None else self._past(past)
        placed = [
            (self._node(node), [self._pod(key) for key in keys]) for node, keys in entry.placed
        ]
        return replace(
            entry,
            past=msgspec.Raw(_encode(renamed)),
            placed=placed,
            assumed={self._pod(key): self._node(node) for key, node in entry.assumed.items()},
            variants={self._pod(key): each for key, each in entry.variants.items()},
            nominated=self._nominated(entry.nominated),
        )

    def _past(self, past: Past) -> Past:
        image, node = self._names.image, self._node
        return Past(
            past.start,
            self._tree(past.tree),
            {image(name): size for name, size in past.image_sizes.items()},
            {
                node(name): {image(each): count for each, count in counts.items()}
                for name, counts in past.image_counts.items()
            },
            {node(name): pressures for name, pressures in past.pressures.items()},
            {
                node(name): [
                    (self._names.address(ip), protocol, number) for ip, protocol, number in ports
                ]
                for name, ports in past.ports.items()
            },
        )

    def _tree(self, tree: TreePosition) -> TreePosition:
        zones = [(self._zone(key), self._nodes(nodes), cursor) for key, nodes, cursor in tree.zones]
        listed = None if tree.listed is None else self._nodes(tree.listed)
        return tree._replace(zones=zones, listed=listed)

    def _zone(self, key: str) -> str:
        region, between, zone = key.partition(_BETWEEN)
        value = self._names.value
        return f"{value(_REGION, region)}{between}{value(_ZONE, zone)}"

    def _nominated(self, pods: Any) -> list[tuple[str, list[tuple[str, str]]]]:
        return [
            (self._node(node), [(self._pod(key), self._uid(key, uid)) for key, uid in found])
            for node, found in pods
        ]

    def _nodes(self, names: Any) -> list[str]:
        return [self._node(name) for name in names]

    def _node(self, name: str) -> str:
        return self._names.name(NODE, name)

    def _uid(self, pod: str, uid: str) -> str:
        """The uid of a pod; that of a pod without one is its key."""
        return self._pod(pod) if uid == pod else self._names.name(UID, uid)

    def _pod(self, key: str) -> str:
        return self._key(POD, key)

    def _group(self, key: str) -> str:
        return self._key(OBJECT, key)

    def _key(self, kind: str, key: str) -> str:
        if not key:
            return ""
        namespace, _, name = key.partition("/")
        return f"{self._names.name(NAMESPACE, namespace)}/{self._names.name(kind, name)}"
