"""What a snapshot keeps of an object: the fields that scheduling reads, and nothing else.

Typed values have no other fields, so environment variables, commands, secrets' names and what
managers wrote about fields are gone by themselves. What remains to be taken out are annotations
that no rule reads, templates of workloads whose pods exist, and what only an API server needs.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.workloads import ReplicaSet, ReplicationController, StatefulSet
from podium.objects.reading.collection import KINDS

#: Kinds that rules look things up in. Other workloads only matter where pods are yet to be made.
KEPT: Final = tuple(kind for kind in KINDS if kind not in {"Deployment", "Job", "DaemonSet"})
#: Annotations that rules read.
ANNOTATIONS: Final = frozenset(
    {
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        "pv.kubernetes.io/bind-completed",
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    }
)


def trimmed(kind: str, version: str, data: msgspec.Raw | bytes) -> bytes | None:
    """The object as JSON of what scheduling reads; None for a pod that has finished."""
    item: Any = _DECODERS[kind].decode(data)
    if isinstance(item, Pod) and item.finished:
        return None
    return msgspec.json.encode(_trim(item, kind, version))


_DECODERS: Final = {kind: msgspec.json.Decoder(known.type) for kind, known in KINDS.items()}


def _trim(item: Object, kind: str, version: str) -> Object:
    item = replace(item, api_version=version, kind=kind, metadata=_metadata(item.metadata))
    if isinstance(item, StatefulSet):
        spec = replace(item.spec, template=None, volume_claim_templates=None)
        return replace(item, spec=spec)
    if isinstance(item, ReplicaSet | ReplicationController):
        return replace(item, spec=replace(item.spec, template=None))
    return item


def _metadata(about: ObjectMeta) -> ObjectMeta:
    kept = {key: text for key, text in (about.annotations or {}).items() if key in ANNOTATIONS}
    return replace(about, generate_name=None, resource_version="", annotations=kept or None)
