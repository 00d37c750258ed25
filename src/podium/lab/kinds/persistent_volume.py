"""Persistent volumes: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.kinds.formats import UNSET, age
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.object_fields import metadata_of, name_of, object_at, text_at
from podium.lab.kinds.printer import Printer
from podium.lab.kinds.volume_fields import (
    access_modes_cell,
    pending_status,
    storage_class_cell,
    validate_access_modes,
    validate_class_and_mode,
)
from podium.lab.validation.quantities import is_positive
from podium.lab.validation.selectors import validate_node_selector
from podium.objects.kinds.meta import JsonObject

#: Fields of a volume that are not its volume source.
_OTHER_FIELDS = frozenset(
    {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
     "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName", "volumeMode"}
)  # fmt: skip


def set_volume_defaults(item: JsonObject) -> None:
    """Set the defaults of a persistent volume."""
    spec = item.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")


def validate_volume(item: JsonObject) -> FieldErrors:
    """Validate the capacity, access modes, source and node affinity of a volume."""
    spec = item.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from validate_access_modes(spec)
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield not_supported("spec.capacity", capacity, ("storage",))
    elif not is_positive(capacity["storage"]):
        what = "must be greater than zero"
        yield invalid_value("spec.capacity[storage]", str(capacity["storage"]), what)
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in {"Delete", "Recycle", "Retain"}:
        kinds = ("Delete", "Recycle", "Retain")
        yield not_supported("spec.persistentVolumeReclaimPolicy", policy, kinds)
    wanted = (spec.get("nodeAffinity") or {}).get("required")
    if spec.get("nodeAffinity") is not None and wanted is None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    elif wanted is not None:
        yield from validate_node_selector(wanted, "spec.nodeAffinity.required")
    yield from _validate_source(spec)
    yield from validate_class_and_mode(spec)


def _validate_source(spec: JsonObject) -> FieldErrors:
    sources = [field for field in spec if field not in _OTHER_FIELDS and spec[field] is not None]
    if not sources:
        yield required("spec", "must specify a volume type")
    for extra in sources[1:]:
        yield forbidden_field(f"spec.{extra}", "may not specify more than 1 volume type")
    for field in ("hostPath", "local"):
        if field in sources and not spec[field].get("path"):
            yield required(f"spec.{field}.path")
    if "local" in sources and spec.get("nodeAffinity") is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")


def _volume_cells(volume: JsonObject, now: float) -> list[Any]:
    spec = object_at(volume, "spec")
    claim = spec.get("claimRef")
    is_terminating = metadata_of(volume).get("deletionTimestamp")
    return [
        name_of(volume),
        text_at(spec, "capacity", "storage", default="0"),
        access_modes_cell(spec),
        text_at(spec, "persistentVolumeReclaimPolicy"),
        "Terminating" if is_terminating else text_at(volume, "status", "phase"),
        f"{text_at(claim, 'namespace')}/{text_at(claim, 'name')}"
        if isinstance(claim, dict)
        else "",
        storage_class_cell(volume),
        text_at(spec, "volumeAttributesClassName", default=UNSET),
        text_at(volume, "status", "reason"),
        age(volume, now),
        text_at(spec, "volumeMode", default=UNSET),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "PersistentVolume": KindStrategy(
        set_defaults=set_volume_defaults,
        new_status=pending_status,
        validate=validate_volume,
        table=Printer(
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
            "VolumeAttributesClass, Reason, Age, *VolumeMode",
            _volume_cells,
        ),
    ),
}
