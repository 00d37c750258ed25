"""Persistent volume claims: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors, forbidden_field, invalid_value, required
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.persistent_volume import (
    access_modes_cell,
    pending_status,
    storage_class_cell,
    validate_access_modes,
    validate_class_and_mode,
)
from podium.lab.kinds.printer import UNSET, Printer, age, metadata_of, name_of, object_at, text_at
from podium.lab.validation.quantities import is_positive
from podium.lab.validation.selectors import validate_label_selector
from podium.objects.kinds.meta import JsonObject


def set_claim_defaults(item: JsonObject) -> None:
    """Set the defaults of a persistent volume claim."""
    item.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


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
    "PersistentVolumeClaim": KindStrategy(
        set_defaults=set_claim_defaults,
        new_status=pending_status,
        validate=validate_claim,
        validate_update=validate_claim_update,
        table=Printer(
            "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, "
            "Age, *VolumeMode",
            _claim_cells,
        ),
    ),
}
