"""Tables of volumes, claims, storage classes and CSI objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.lab.tables.formats import NONE, UNSET, age, parse_time
from podium.lab.tables.object_fields import list_at, metadata_of, name_of, object_at, text_at
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _volume_cells(volume: JsonObject, now: float) -> list[Any]:
    spec = object_at(volume, "spec")
    claim = spec.get("claimRef")
    is_terminating = metadata_of(volume).get("deletionTimestamp")
    return [
        name_of(volume),
        text_at(spec, "capacity", "storage", default="0"),
        _access_modes(spec),
        text_at(spec, "persistentVolumeReclaimPolicy"),
        "Terminating" if is_terminating else text_at(volume, "status", "phase"),
        f"{text_at(claim, 'namespace')}/{text_at(claim, 'name')}"
        if isinstance(claim, dict)
        else "",
        _storage_class(volume),
        text_at(spec, "volumeAttributesClassName", default=UNSET),
        text_at(volume, "status", "reason"),
        age(volume, now),
        text_at(spec, "volumeMode", default=UNSET),
    ]


def _claim_cells(claim: JsonObject, now: float) -> list[Any]:
    spec, status = object_at(claim, "spec"), object_at(claim, "status")
    volume = text_at(spec, "volumeName")
    is_terminating = metadata_of(claim).get("deletionTimestamp")
    return [
        name_of(claim),
        "Terminating" if is_terminating else text_at(status, "phase"),
        volume,
        text_at(status, "capacity", "storage", default="0") if volume else "",
        _access_modes(status) if volume else "",
        _storage_class(claim),
        text_at(spec, "volumeAttributesClassName", default=UNSET),
        age(claim, now),
        text_at(spec, "volumeMode", default=UNSET),
    ]


def _access_modes(holder: JsonObject) -> str:
    asked = list_at(holder, "accessModes")
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in asked)


def _storage_class(object_: JsonObject) -> str:
    old = object_at(object_, "metadata", "annotations").get(_OLD_CLASS_ANNOTATION)
    return text_at(object_, "spec", "storageClassName") if old is None else str(old)


def _storage_class_cells(storage: JsonObject, now: float) -> list[Any]:
    return [
        name_of(storage),
        text_at(storage, "provisioner"),
        text_at(storage, "reclaimPolicy", default="Delete"),
        text_at(storage, "volumeBindingMode", default="Immediate"),
        bool(storage.get("allowVolumeExpansion")),
        age(storage, now),
    ]


def _attachment_cells(attachment: JsonObject, now: float) -> list[Any]:
    return [
        name_of(attachment),
        text_at(attachment, "spec", "attacher"),
        text_at(attachment, "spec", "source", "persistentVolumeName"),
        text_at(attachment, "spec", "nodeName"),
        bool(object_at(attachment, "status").get("attached")),
        age(attachment, now),
    ]


def _csi_node_cells(node: JsonObject, now: float) -> list[Any]:
    return [name_of(node), len(list_at(node, "spec", "drivers")), age(node, now)]


def _csi_driver_cells(driver: JsonObject, now: float) -> list[Any]:
    spec = object_at(driver, "spec")
    requests = spec.get("tokenRequests")
    audiences = ",".join(str(each.get("audience", "")) for each in requests or [])
    return [
        name_of(driver),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(map(str, list_at(spec, "volumeLifecycleModes"))) or NONE,
        age(driver, now),
    ]


def _capacity_cells(capacity: JsonObject, _now: float) -> list[Any]:
    room = text_at(capacity, "capacity", default=UNSET)
    return [name_of(capacity), text_at(capacity, "storageClassName"), room]


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


PRINTERS: Mapping[str, Printer] = {
    "CSIDriver": Printer(
        "Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, "
        "?RequiresRepublish, Modes, Age",
        _csi_driver_cells,
    ),
    "CSINode": Printer("Name, #Drivers, Age", _csi_node_cells),
    "CSIStorageCapacity": Printer("Name, StorageClassName, Capacity", _capacity_cells),
    "PersistentVolume": Printer(
        "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
        "VolumeAttributesClass, Reason, Age, *VolumeMode",
        _volume_cells,
    ),
    "PersistentVolumeClaim": Printer(
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, "
        "Age, *VolumeMode",
        _claim_cells,
    ),
    "StorageClass": Printer(
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class_cells,
        finish=_mark_default,
    ),
    "VolumeAttachment": Printer("Name, Attacher, PV, Node, ?Attached, Age", _attachment_cells),
}
