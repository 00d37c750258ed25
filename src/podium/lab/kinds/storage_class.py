"""Storage classes, CSI drivers and nodes, capacities and attachments: defaults, validation, table.

Upstream: pkg/apis/storage, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.lab.api.encoding import parse_time
from podium.lab.api.status import (
    FieldErrors,
    forbidden_field,
    required,
)
from podium.lab.kinds.field_checks import validate_choice, validate_name, validate_qualified_name
from podium.lab.kinds.kind import (
    NONE,
    UNSET,
    KindStrategy,
    Printer,
    defaults,
    list_at,
    metadata_of,
    object_at,
)
from podium.objects.field_errors import dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject

_IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DRIVER_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "volumeLifecycleModes": ["Persistent"],
}


def validate_storage_class(item: JsonObject) -> FieldErrors:
    """Validate the provisioner, reclaim policy and binding mode of a storage class."""
    provisioner = item.get("provisioner") or ""
    if not provisioner:
        yield required("provisioner")
    else:
        yield from validate_qualified_name(provisioner.lower(), "provisioner")
    yield from validate_choice(item.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    yield from validate_choice(item.get("volumeBindingMode"), "volumeBindingMode", modes)


def validate_storage_class_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a storage class: its parameters are immutable."""
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if (item.get(field) or None) != (old.get(field) or None):
            yield forbidden_field(field, f"updates to {field} are forbidden.")


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


def validate_csi_node(item: JsonObject) -> FieldErrors:
    """Validate the CSI drivers of a node."""
    for index, each in enumerate((item.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        yield from validate_name(name, f"{here}.name", dns_subdomain_reasons)
        if not each.get("nodeID"):
            yield required(f"{here}.nodeID")


def _audiences(driver: JsonObject, _now: float) -> str:
    requests = object_at(driver, "spec").get("tokenRequests")
    audiences = ",".join(str(each.get("audience", "")) for each in requests or [])
    return UNSET if requests is None else audiences


def _modes(driver: JsonObject, _now: float) -> str:
    return ",".join(map(str, list_at(driver, "spec", "volumeLifecycleModes"))) or NONE


KINDS: Mapping[str, KindStrategy] = {
    "StorageClass": KindStrategy(
        set_defaults=defaults({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        validate=validate_storage_class,
        validate_update=validate_storage_class_update,
        table=Printer(
            "Name, Provisioner=provisioner, ReclaimPolicy=reclaimPolicy|Delete, "
            "VolumeBindingMode=volumeBindingMode|Immediate, AllowVolumeExpansion, Age",
            {"AllowVolumeExpansion": lambda item, _: bool(item.get("allowVolumeExpansion"))},
            finish=_mark_default,
        ),
    ),
    "CSIDriver": KindStrategy(
        set_defaults=defaults({"spec": _DRIVER_DEFAULTS}),
        allows_unconditional_update=False,
        table=Printer(
            "Name, ?AttachRequired, ?PodInfoOnMount=spec.podInfoOnMount, "
            "?StorageCapacity=spec.storageCapacity, TokenRequests, "
            "?RequiresRepublish=spec.requiresRepublish, Modes, Age",
            {
                "AttachRequired": lambda item, _: (
                    object_at(item, "spec").get("attachRequired") is not False
                ),
                "TokenRequests": _audiences,
                "Modes": _modes,
            },
        ),
    ),
    "CSINode": KindStrategy(
        validate=validate_csi_node,
        allows_unconditional_update=False,
        table=Printer(
            "Name, #Drivers, Age",
            {"Drivers": lambda node, _: len(list_at(node, "spec", "drivers"))},
        ),
    ),
    "CSIStorageCapacity": KindStrategy(
        table=Printer("Name, StorageClassName=storageClassName, Capacity=capacity|<unset>")
    ),
    "VolumeAttachment": KindStrategy(
        table=Printer(
            "Name, Attacher=spec.attacher, PV=spec.source.persistentVolumeName, "
            "Node=spec.nodeName, ?Attached=status.attached, Age"
        )
    ),
}
