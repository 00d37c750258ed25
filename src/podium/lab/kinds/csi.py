"""CSI drivers, CSI nodes, storage capacities and volume attachments: defaults, validation, table.

Upstream: pkg/apis/storage, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors, invalid_value, required
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.printer import NONE, UNSET, Printer, age, list_at, name_of, object_at, text_at
from podium.lab.validation.metadata import dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject


def set_csi_driver_defaults(item: JsonObject) -> None:
    """Set the defaults of a CSI driver."""
    spec = item.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def validate_csi_node(item: JsonObject) -> FieldErrors:
    """Validate the CSI drivers of a node."""
    for index, each in enumerate((item.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        for reason in dns_subdomain_reasons(name):
            yield invalid_value(f"{here}.name", name, reason)
        if not each.get("nodeID"):
            yield required(f"{here}.nodeID")


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


KINDS: Mapping[str, KindStrategy] = {
    "CSIDriver": KindStrategy(
        set_defaults=set_csi_driver_defaults,
        allows_unconditional_update=False,
        table=Printer(
            "Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, "
            "?RequiresRepublish, Modes, Age",
            _csi_driver_cells,
        ),
    ),
    "CSINode": KindStrategy(
        validate=validate_csi_node,
        allows_unconditional_update=False,
        table=Printer("Name, #Drivers, Age", _csi_node_cells),
    ),
    "CSIStorageCapacity": KindStrategy(
        table=Printer("Name, StorageClassName, Capacity", _capacity_cells)
    ),
    "VolumeAttachment": KindStrategy(
        table=Printer("Name, Attacher, PV, Node, ?Attached, Age", _attachment_cells)
    ),
}
