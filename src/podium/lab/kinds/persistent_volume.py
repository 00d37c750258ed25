"""Persistent volumes and their claims: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    Cell,
    KindStrategy,
    Printer,
    defaults,
    list_at,
    metadata_of,
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


def _access_modes(holder: JsonObject) -> str:
    """The access modes in their short form."""
    asked = list_at(holder, "accessModes")
    return ",".join(short for mode, short in _SHORT_ACCESS_MODES.items() if mode in asked)


def _storage_class(item: JsonObject, _now: float) -> str:
    old = object_at(item, "metadata", "annotations").get(_OLD_CLASS_ANNOTATION)
    return text_at(item, "spec", "storageClassName") if old is None else str(old)


def _phase(item: JsonObject, _now: float) -> str:
    terminating = metadata_of(item).get("deletionTimestamp")
    return "Terminating" if terminating else text_at(item, "status", "phase")


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


def _claim_of_volume(volume: JsonObject, _now: float) -> str:
    claim = object_at(volume, "spec").get("claimRef")
    if not isinstance(claim, dict):
        return ""
    return f"{text_at(claim, 'namespace')}/{text_at(claim, 'name')}"


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


def _if_bound(cell: Callable[[JsonObject], str]) -> Cell:
    """A cell of the status of a claim, empty until the claim has a volume."""
    return lambda claim, _: (
        cell(object_at(claim, "status")) if text_at(claim, "spec", "volumeName") else ""
    )


KINDS: Mapping[str, KindStrategy] = {
    "PersistentVolume": KindStrategy(
        set_defaults=set_volume_defaults,
        new_status={"phase": "Pending"},
        validate=validate_volume,
        table=Printer(
            "Name, Capacity=spec.capacity.storage|0, Access Modes, "
            "Reclaim Policy=spec.persistentVolumeReclaimPolicy, Status, Claim, StorageClass, "
            "VolumeAttributesClass=spec.volumeAttributesClassName|<unset>, Reason=status.reason, "
            "Age, *VolumeMode=spec.volumeMode|<unset>",
            {
                "Access Modes": lambda item, _: _access_modes(object_at(item, "spec")),
                "Status": _phase,
                "Claim": _claim_of_volume,
                "StorageClass": _storage_class,
            },
        ),
    ),
    "PersistentVolumeClaim": KindStrategy(
        set_defaults=defaults({"spec": {"volumeMode": "Filesystem"}}),
        new_status={"phase": "Pending"},
        validate=validate_claim,
        validate_update=validate_claim_update,
        table=Printer(
            "Name, Status, Volume=spec.volumeName, Capacity, Access Modes, StorageClass, "
            "VolumeAttributesClass=spec.volumeAttributesClassName|<unset>, Age, "
            "*VolumeMode=spec.volumeMode|<unset>",
            {
                "Status": _phase,
                "Capacity": _if_bound(lambda it: text_at(it, "capacity", "storage", default="0")),
                "Access Modes": _if_bound(_access_modes),
                "StorageClass": _storage_class,
            },
        ),
    ),
}
