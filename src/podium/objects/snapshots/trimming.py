"""What a snapshot keeps of an object: the fields that decisions and plans depend on.

Value classes have only the fields that scheduling reads, so environment variables, commands, names
of secrets and managed fields are gone once an object is decoded. What is taken out here are
annotations that nothing reads, what an API server alone needs, and what the declaration of a kind
takes out (`Kind.trim`). `plan_fields` puts back what controllers read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import JsonObject, Object, ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.plan_fields import PLAN_ANNOTATIONS, with_plan_fields

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
#: Where a workload has templates, and what is kept of their metadata.
_TEMPLATES: Final = {
    "template": ("labels",),
    "jobTemplate": ("labels",),
    "volumeClaimTemplates": ("name", "labels"),
}


def trimmed(kind: str, version: str, data: msgspec.Raw | bytes) -> bytes | None:
    """The object as JSON of what is read of it; None for a pod that has finished."""
    item = KINDS[kind].decoder.decode(data)
    if isinstance(item, Pod) and item.finished:
        return None
    kept: JsonObject = msgspec.to_builtins(_trim(item, KINDS[kind], version))
    _trim_templates(kept.get("spec", {}))
    return msgspec.json.encode(with_plan_fields(kind, kept, msgspec.json.decode(data)))


def _trim(item: Object, kind: Kind[Any], version: str) -> Object:
    item = replace(item, api_version=version, kind=kind.name, metadata=_metadata(item.metadata))
    return item if kind.trim is None else kind.trim(item)


def _metadata(about: ObjectMeta) -> ObjectMeta:
    read = ANNOTATIONS | PLAN_ANNOTATIONS
    kept = {key: text for key, text in (about.annotations or {}).items() if key in read}
    return replace(about, generate_name=None, resource_version="", annotations=kept or None)


def _trim_templates(spec: JsonObject) -> None:
    """Leave labels in the metadata of templates, and the names of those of claims."""
    for name, kept in _TEMPLATES.items():
        found = spec.get(name, ())
        for each in [found] if isinstance(found, dict) else found:
            about = each.get("metadata", {})
            each["metadata"] = {part: about[part] for part in kept if part in about}
            _trim_templates(each.get("spec", {}))
