"""Validation of persistent volume claims, persistent volumes and storage classes.

Upstream: pkg/apis/core/validation (volumes), pkg/apis/storage/validation.
"""

from __future__ import annotations

from podium.lab.api.field_errors import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.validation.names import dns_subdomain_reasons
from podium.lab.validation.quantities import is_positive
from podium.lab.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
    validate_qualified_name,
)
from podium.objects.kinds.meta import JsonObject

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
#: Fields of a volume that are not its volume source.
_OTHER_FIELDS = frozenset(
    {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
     "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName", "volumeMode"}
)  # fmt: skip


def validate_claim(item: JsonObject) -> FieldErrors:
    """Validate the access modes, size, selector and class of a claim."""
    spec = item.get("spec") or {}
    yield from validate_label_selector(spec.get("selector"), "spec.selector")
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from _validate_access_modes(spec)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required("spec.resources[storage]")
    elif not is_positive(size):
        yield invalid_value("spec.resources[storage]", str(size), "must be greater than zero")
    yield from _validate_class_and_mode(spec)


def _validate_access_modes(spec: JsonObject) -> FieldErrors:
    for mode in spec.get("accessModes") or ():
        if mode not in _ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, _ACCESS_MODES)


def _validate_class_and_mode(spec: JsonObject) -> FieldErrors:
    name = spec.get("storageClassName")
    if name:
        for reason in dns_subdomain_reasons(name):
            yield invalid_value("spec.storageClassName", name, reason)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield not_supported("spec.volumeMode", mode, _VOLUME_MODES)


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


def validate_volume(item: JsonObject) -> FieldErrors:
    """Validate the capacity, access modes, source and node affinity of a volume."""
    spec = item.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _validate_access_modes(spec)
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
    yield from _validate_class_and_mode(spec)


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


def validate_storage_class(item: JsonObject) -> FieldErrors:
    """Validate the provisioner, reclaim policy and binding mode of a storage class."""
    provisioner = item.get("provisioner") or ""
    if not provisioner:
        yield required("provisioner")
    else:
        yield from validate_qualified_name(provisioner.lower(), "provisioner")
    if item.get("reclaimPolicy") not in {"Delete", "Retain"}:
        yield not_supported("reclaimPolicy", item.get("reclaimPolicy"), ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    if item.get("volumeBindingMode") not in modes:
        yield not_supported("volumeBindingMode", item.get("volumeBindingMode"), modes)


def validate_storage_class_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a storage class: its parameters are immutable."""
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if (item.get(field) or None) != (old.get(field) or None):
            yield forbidden_field(field, f"updates to {field} are forbidden.")
