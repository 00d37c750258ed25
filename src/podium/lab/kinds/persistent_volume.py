"""Persistent volumes and their claims: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.kinds.field_checks import (
    is_positive,
    validate_choice,
    validate_label_selector,
    validate_name,
    validate_node_selector,
)
from podium.lab.kinds.kind import (
    UNSET,
    KindStrategy,
    Printer,
    age,
    defaults,
    list_at,
    metadata_of,
    name_of,
    object_at,
    text_at,
)
from podium.objects.field_errors import dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_SHORT_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
#: Fields of a volume that are not its volume source.
_OTHER_FIELDS = frozenset(
    {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
     "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName", "volumeMode"}
)  # fmt: skip


def validate_access_modes(spec: JsonObject) -> FieldErrors:
    """Validate the access modes of a claim or volume."""
    for mode in spec.get("accessModes") or ():
        yield from validate_choice(mode, "spec.accessModes", _ACCESS_MODES)


def validate_class_and_mode(spec: JsonObject) -> FieldErrors:
    """Validate the name of the class and the volume mode."""
    name = spec.get("storageClassName")
    if name:
        yield from validate_name(name, "spec.storageClassName", dns_subdomain_reasons)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield not_supported("spec.volumeMode", mode, _VOLUME_MODES)


def access_modes_cell(holder: JsonObject) -> str:
    """The access modes in their short form."""
    asked = list_at(holder, "accessModes")
    return ",".join(short for mode, short in _SHORT_ACCESS_MODES.items() if mode in asked)


def storage_class_cell(object_: JsonObject) -> str:
    """The name of the storage class."""
    old = object_at(object_, "metadata", "annotations").get(_OLD_CLASS_ANNOTATION)
    return text_at(object_, "spec", "storageClassName") if old is None else str(old)


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
    yield from validate_choice(
        policy, "spec.persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain")
    )
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


def validate_claim(item: JsonObject) -> FieldErrors:
    """Validate the access modes, size, selector and class of a claim."""
    spec = item.get("spec") or {}
    yield from validate_label_selector(spec.get("selector"), "spec.selector")
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from validate_access_modes(spec)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required("spec.resources[storage]")
    elif not is_positive(size):
        yield invalid_value("spec.resources[storage]", str(size), "must be greater than zero")
    yield from validate_class_and_mode(spec)


def validate_claim_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a claim: only its volume, class and size can be set later."""
    new, before = dict(item.get("spec") or {}), dict(old.get("spec") or {})
    loose = {"volumeName"} if not before.get("volumeName") else set()
    if not before.get("storageClassName"):
        loose.add("storageClassName")
    bound = (old.get("status") or {}).get("phase") == "Bound"
    loose |= {"resources", "volumeAttributesClassName"} if bound else set()
    fixed = [{key: each[key] for key in each if key not in loose} for each in (new, before)]
    if fixed[0] != fixed[1]:
        yield forbidden_field(
            "spec",
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )


def _claim_cells(claim: JsonObject, now: float) -> list[Any]:
    spec, status = object_at(claim, "spec"), object_at(claim, "status")
    volume = text_at(spec, "volumeName")
    is_terminating = metadata_of(claim).get("deletionTimestamp")
    return [
        name_of(claim),
        "Terminating" if is_terminating else text_at(status, "phase"),
        volume,
        text_at(status, "capacity", "storage", default="0") if volume else "",
        access_modes_cell(status) if volume else "",
        storage_class_cell(claim),
        text_at(spec, "volumeAttributesClassName", default=UNSET),
        age(claim, now),
        text_at(spec, "volumeMode", default=UNSET),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "PersistentVolume": KindStrategy(
        set_defaults=set_volume_defaults,
        new_status={"phase": "Pending"},
        validate=validate_volume,
        table=Printer(
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
            "VolumeAttributesClass, Reason, Age, *VolumeMode",
            _volume_cells,
        ),
    ),
    "PersistentVolumeClaim": KindStrategy(
        set_defaults=defaults({"spec": {"volumeMode": "Filesystem"}}),
        new_status={"phase": "Pending"},
        validate=validate_claim,
        validate_update=validate_claim_update,
        table=Printer(
            "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, "
            "Age, *VolumeMode",
            _claim_cells,
        ),
    ),
}
