"""Tables of nodes and namespaces, of events, and of objects that only hold data or limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.tables.formats import NONE, UNKNOWN, age, time_since
from podium.lab.tables.object_fields import (
    condition_status,
    list_at,
    name_of,
    number_at,
    object_at,
    text_at,
)
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject

_ROLE_LABEL = "node-role.kubernetes.io/"


def _node_cells(node: JsonObject, now: float) -> list[Any]:
    ready = condition_status(node, "Ready")
    status = ("Ready" if ready == "True" else "NotReady") if ready else "Unknown"
    if object_at(node, "spec").get("unschedulable"):
        status += ",SchedulingDisabled"
    info = object_at(node, "status", "nodeInfo")
    kernel, architecture = (
        text_at(info, "kernelVersion", default=UNKNOWN),
        text_at(info, "architecture"),
    )
    return [
        name_of(node),
        status,
        _roles(node),
        age(node, now),
        text_at(info, "kubeletVersion"),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        text_at(info, "osImage", default=UNKNOWN),
        f"{kernel} ({architecture})" if architecture else kernel,
        text_at(info, "containerRuntimeVersion", default=UNKNOWN),
    ]


def _roles(node: JsonObject) -> str:
    found = set()
    for key, value in object_at(node, "metadata", "labels").items():
        if key.startswith(_ROLE_LABEL):
            found.add(key.removeprefix(_ROLE_LABEL))
        elif key == "kubernetes.io/role":
            found.add(str(value))
    return ",".join(sorted(found - {""})) or NONE


def _address(node: JsonObject, kind: str) -> str:
    found = (each for each in list_at(node, "status", "addresses") if each.get("type") == kind)
    return next((str(each.get("address")) for each in found), NONE)


def _namespace_cells(namespace: JsonObject, now: float) -> list[Any]:
    return [name_of(namespace), text_at(namespace, "status", "phase"), age(namespace, now)]


def _event_cells(event: JsonObject, now: float) -> list[Any]:
    about = object_at(event, "involvedObject") or object_at(event, "regarding")
    if "regarding" in event:  # as events.k8s.io has them
        old = {key.removeprefix("deprecated"): value for key, value in event.items()}
        event = {key[:1].lower() + key[1:]: value for key, value in old.items()} | event
    first = event.get("firstTimestamp") or event.get("eventTime")
    last, count = event.get("lastTimestamp") or first, number_at(event, "count") or 1
    series = event.get("series")
    if isinstance(series, dict):
        last, count = series.get("lastObservedTime"), number_at(series, "count")
    kind, name = text_at(about, "kind").lower(), text_at(about, "name")
    component = text_at(event, "source", "component") or text_at(event, "reportingComponent")
    host = text_at(event, "source", "host") or text_at(event, "reportingInstance")
    return [
        time_since(last, now),
        text_at(event, "type"),
        text_at(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text_at(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        (text_at(event, "message") or text_at(event, "note")).strip(),
        time_since(first, now),
        count,
        name_of(event),
    ]


def _priority_class_cells(priority: JsonObject, now: float) -> list[Any]:
    return [
        name_of(priority),
        number_at(priority, "value"),
        bool(priority.get("globalDefault")),
        age(priority, now),
        text_at(priority, "preemptionPolicy"),
    ]


def _lease_cells(lease: JsonObject, now: float) -> list[Any]:
    return [name_of(lease), text_at(lease, "spec", "holderIdentity"), age(lease, now)]


def _config_map_cells(config: JsonObject, now: float) -> list[Any]:
    data = len(object_at(config, "data")) + len(object_at(config, "binaryData"))
    return [name_of(config), data, age(config, now)]


def _secret_cells(secret: JsonObject, now: float) -> list[Any]:
    return [
        name_of(secret),
        text_at(secret, "type"),
        len(object_at(secret, "data")),
        age(secret, now),
    ]


def _named_cells(object_: JsonObject, now: float) -> list[Any]:
    return [name_of(object_), age(object_, now)]


def _quota_cells(quota: JsonObject, now: float) -> list[Any]:
    used, hard = object_at(quota, "status", "used"), object_at(quota, "status", "hard")
    rows: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        rows[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [name_of(quota), ", ".join(rows[False]), ", ".join(rows[True]), age(quota, now)]


PRINTERS: Mapping[str, Printer] = {
    "ConfigMap": Printer("Name, Data, Age", _config_map_cells),
    "Event": Printer(
        "Last Seen, Type, Reason, Object, *Subobject, *Source, Message, *First Seen, *Count, *Name",
        _event_cells,
    ),
    "Lease": Printer("Name, Holder, Age", _lease_cells),
    "Namespace": Printer("Name, Status, Age", _namespace_cells),
    "Node": Printer(
        "Name, Status, Roles, Age, Version, *Internal-IP, *External-IP, *OS-Image, "
        "*Kernel-Version, *Container-Runtime",
        _node_cells,
    ),
    "PriorityClass": Printer(
        "Name, #Value, ?Global-Default, Age, PreemptionPolicy",
        _priority_class_cells,
    ),
    "ResourceQuota": Printer("Name, Request, Limit, Age", _quota_cells),
    "Secret": Printer("Name, Type, Data, Age", _secret_cells),
    "ServiceAccount": Printer("Name, Age", _named_cells),
}
