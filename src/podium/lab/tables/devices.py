"""Tables of claims, their templates, device classes and slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.tables.formats import age
from podium.lab.tables.object_fields import list_at, metadata_of, name_of, object_at, text_at
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject


def _name_and_age(item: JsonObject, now: float) -> list[Any]:
    return [name_of(item), age(item, now)]


def _claim_cells(item: JsonObject, now: float) -> list[Any]:
    return [name_of(item), _claim_state(item), age(item, now)]


def _claim_state(item: JsonObject) -> str:
    deleted = "deletionTimestamp" in metadata_of(item)
    states = ["deleted"] if deleted else []
    if object_at(item, "status", "allocation"):
        states.append("allocated")
        if list_at(item, "status", "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


def _slice_cells(item: JsonObject, now: float) -> list[Any]:
    return [
        name_of(item),
        text_at(item, "spec", "nodeName"),
        text_at(item, "spec", "driver"),
        text_at(item, "spec", "pool", "name"),
        age(item, now),
    ]


PRINTERS: Mapping[str, Printer] = {
    "DeviceClass": Printer("Name, Age", _name_and_age),
    "ResourceClaim": Printer("Name, State, Age", _claim_cells),
    "ResourceClaimTemplate": Printer("Name, Age", _name_and_age),
    "ResourceSlice": Printer("Name, Node, Driver, Pool, Age", _slice_cells),
}
