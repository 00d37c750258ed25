"""Entries of a history under other names, chosen as for anonymized snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.cluster.cache.past import Past
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.anonymizing import anonymize, renamed_profile
from podium.objects.snapshots.pseudonyms import NAMESPACE, NODE, OBJECT, POD, UID
from podium.objects.snapshots.trimming import ANNOTATIONS
from podium.past.format.reading import ObjectChange, SegmentStart, Torn, decided_pod
from podium.past.format.records import (
    Bound,
    Checkpoint,
    ClaimMade,
    ClaimWritten,
    Decided,
    Evicting,
    Forgotten,
    GroupDecided,
    Kept,
    Nominated,
    Profiles,
)

if TYPE_CHECKING:
    from podium.cluster.cache.node_tree import TreePosition
    from podium.objects.kinds.meta import Object
    from podium.objects.snapshots.pseudonyms import Pseudonyms
    from podium.past.format.reading import Entry
    from podium.past.format.records import AnyRecord

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
        raw = entry.object
        if raw is not None:
            raw = msgspec.Raw(_encode(self._object("Pod", decided_pod(raw))))
        return replace(
            entry,
            differences=_DIFFERED if entry.differences else (),
            pod=self._pod(entry.pod),
            uid=self._uid(entry.pod, entry.uid),
            node=entry.node if entry.node is None else self._node(entry.node),
            nominated=entry.nominated if entry.nominated is None else self._node(entry.nominated),
            object=raw,
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
