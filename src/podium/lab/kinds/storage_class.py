"""Storage classes: defaults, validation, table.

Upstream: pkg/apis/storage, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.lab.api.field_errors import FieldErrors, forbidden_field, not_supported, required
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.printer import (
    Printer,
    age,
    metadata_of,
    name_of,
    object_at,
    parse_time,
    text_at,
)
from podium.lab.validation.selectors import validate_qualified_name
from podium.objects.kinds.meta import JsonObject

_IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def set_storage_class_defaults(item: JsonObject) -> None:
    """Set the defaults of a storage class."""
    item.setdefault("reclaimPolicy", "Delete")
    item.setdefault("volumeBindingMode", "Immediate")


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


def _storage_class_cells(storage: JsonObject, now: float) -> list[Any]:
    return [
        name_of(storage),
        text_at(storage, "provisioner"),
        text_at(storage, "reclaimPolicy", default="Delete"),
        text_at(storage, "volumeBindingMode", default="Immediate"),
        bool(storage.get("allowVolumeExpansion")),
        age(storage, now),
    ]


def _mark_default(classes: Sequence[JsonObject], rows: Sequence[JsonObject]) -> None:
    """Mark the class of claims that name none: the youngest of those annotated as default."""
    found = [
        (-(parse_time(metadata_of(each).get("creationTimestamp")) or 0), row["cells"][0], at)
        for at, (each, row) in enumerate(zip(classes, rows, strict=True))
        if any(
            object_at(each, "metadata", "annotations").get(name) == "true"
            for name in _IS_DEFAULT_CLASS
        )
    ]
    if found:
        rows[min(found)[2]]["cells"][0] += " (default)"


KINDS: Mapping[str, KindStrategy] = {
    "StorageClass": KindStrategy(
        set_defaults=set_storage_class_defaults,
        validate=validate_storage_class,
        validate_update=validate_storage_class_update,
        table=Printer(
            "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
            _storage_class_cells,
            finish=_mark_default,
        ),
    ),
}
