"""What a snapshot keeps of an object: the fields that decisions depend on.

Value classes have only the fields that scheduling reads, so environment variables, commands, names
of secrets and managed fields are gone once an object is decoded. What is taken out here are
annotations that no rule reads, what an API server alone needs, and what the declaration of a kind
takes out (`Kind.trim`), such as templates of workloads whose pods exist.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS

#: Annotations that rules read.
ANNOTATIONS: Final = frozenset(
    {
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        "pv.kubernetes.io/bind-completed",
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
        "resource.kubernetes.io/extended-resource-claim",
    }
)


def snapshot_kinds() -> tuple[Kind[Any], ...]:
    """The kinds whose objects are in a snapshot."""
    return tuple(kind for kind in KINDS.values() if kind.in_snapshots)


def trimmed(kind: str, version: str, data: msgspec.Raw | bytes) -> bytes | None:
    """The object as JSON of what decisions depend on; None for a pod that has finished."""
    item = KINDS[kind].decoder.decode(data)
    if isinstance(item, Pod) and item.finished:
        return None
    return msgspec.json.encode(_trim(item, KINDS[kind], version))


def _trim(item: Object, kind: Kind[Any], version: str) -> Object:
    item = replace(item, api_version=version, kind=kind.name, metadata=_metadata(item.metadata))
    return item if kind.trim is None else kind.trim(item)


def _metadata(about: ObjectMeta) -> ObjectMeta:
    kept = {key: text for key, text in (about.annotations or {}).items() if key in ANNOTATIONS}
    return replace(about, generate_name=None, resource_version="", annotations=kept or None)
