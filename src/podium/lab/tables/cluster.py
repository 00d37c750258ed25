"""Rows of what is no workload: nodes, services, storage, events and the rest."""

from __future__ import annotations

from typing import Any

from podium.lab.api.status import JsonDict
from podium.lab.tables.text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    at_most_three,
    condition,
    items,
    labels,
    metadata,
    number,
    part,
    since,
    text,
)

_ROLE = "node-role.kubernetes.io/"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS = "volume.beta.kubernetes.io/storage-class"


def _name(object_: JsonDict) -> str:
    return text(object_, "metadata", "name")


def node_cells(node: JsonDict, now: float) -> list[Any]:
    """A node."""
    ready = condition(node, "Ready")
    status = ("Ready" if ready == "True" else "NotReady") if ready else "Unknown"
    if part(node, "spec").get("unschedulable"):
        status += ",SchedulingDisabled"
    info = part(node, "status", "nodeInfo")
    kernel, architecture = text(info, "kernelVersion", default=UNKNOWN), text(info, "architecture")
    return [
        _name(node),
        status,
        _roles(node),
        age(node, now),
        text(info, "kubeletVersion"),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        text(info, "osImage", default=UNKNOWN),
        f"{kernel} ({architecture})" if architecture else kernel,
        text(info, "containerRuntimeVersion", default=UNKNOWN),
    ]


def _roles(node: JsonDict) -> str:
    found = set()
    for key, value in part(node, "metadata", "labels").items():
        if key.startswith(_ROLE):
            found.add(key.removeprefix(_ROLE))
        elif key == "kubernetes.io/role":
            found.add(str(value))
    return ",".join(sorted(found - {""})) or NONE


def _address(node: JsonDict, kind: str) -> str:
    found = (each for each in items(node, "status", "addresses") if each.get("type") == kind)
    return next((str(each.get("address")) for each in found), NONE)


def namespace_cells(namespace: JsonDict, now: float) -> list[Any]:
    """A namespace."""
    return [_name(namespace), text(namespace, "status", "phase"), age(namespace, now)]


def service_cells(service: JsonDict, now: float) -> list[Any]:
    """A service."""
    spec = part(service, "spec")
    addresses = items(spec, "clusterIPs")
    ports = []
    for each in items(spec, "ports"):
        own = f":{each['nodePort']}" if each.get("nodePort") else ""
        ports.append(f"{each.get('port')}{own}/{each.get('protocol', 'TCP')}")
    return [
        _name(service),
        text(spec, "type"),
        str(addresses[0]) if addresses else text(spec, "clusterIP", default=NONE),
        _external_address(service),
        ",".join(ports) or NONE,
        age(service, now),
        labels(part(spec, "selector")),
    ]


def _external_address(service: JsonDict) -> str:
    spec = part(service, "spec")
    kind, external = text(spec, "type"), ",".join(map(str, items(spec, "externalIPs")))
    if kind in ("ClusterIP", "NodePort"):
        return external or NONE
    if kind == "LoadBalancer":
        given = items(service, "status", "loadBalancer", "ingress")
        found = sorted({str(each.get("ip") or each.get("hostname") or "") for each in given} - {""})
        return ",".join([*found, *([external] if external else [])]) or "<pending>"
    return text(spec, "externalName") if kind == "ExternalName" else UNKNOWN


def endpoints_cells(endpoints: JsonDict, now: float) -> list[Any]:
    """The endpoints of a service."""
    found = []
    for subset in items(endpoints, "subsets"):
        addresses = [str(each.get("ip")) for each in items(subset, "addresses")]
        ports = items(subset, "ports")
        if not ports:
            found += addresses
        for port in ports:
            found += [
                f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}"
                for ip in addresses
            ]
    shown = at_most_three(found, empty="" if items(endpoints, "subsets") else NONE)
    return [_name(endpoints), shown, age(endpoints, now)]


def endpoint_slice_cells(slice_: JsonDict, now: float) -> list[Any]:
    """A slice of the endpoints of a service."""
    ports = (str(each.get("port") or each.get("name") or "*") for each in items(slice_, "ports"))
    addresses = (str(ip) for each in items(slice_, "endpoints") for ip in items(each, "addresses"))
    return [
        _name(slice_),
        text(slice_, "addressType"),
        at_most_three(ports),
        at_most_three(addresses),
        age(slice_, now),
    ]


def event_cells(event: JsonDict, now: float) -> list[Any]:
    """An event."""
    about = part(event, "involvedObject") or part(event, "regarding")
    if "regarding" in event:  # as events.k8s.io has them
        old = {key.removeprefix("deprecated"): value for key, value in event.items()}
        event = {key[:1].lower() + key[1:]: value for key, value in old.items()} | event
    first = event.get("firstTimestamp") or event.get("eventTime")
    last, count = event.get("lastTimestamp") or first, number(event, "count") or 1
    series = event.get("series")
    if isinstance(series, dict):
        last, count = series.get("lastObservedTime"), number(series, "count")
    kind, name = text(about, "kind").lower(), text(about, "name")
    component = text(event, "source", "component") or text(event, "reportingComponent")
    host = text(event, "source", "host") or text(event, "reportingInstance")
    return [
        since(last, now),
        text(event, "type"),
        text(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        (text(event, "message") or text(event, "note")).strip(),
        since(first, now),
        count,
        _name(event),
    ]


def volume_cells(volume: JsonDict, now: float) -> list[Any]:
    """A persistent volume."""
    spec = part(volume, "spec")
    claim = spec.get("claimRef")
    leaving = metadata(volume).get("deletionTimestamp")
    return [
        _name(volume),
        text(spec, "capacity", "storage", default="0"),
        _modes(spec),
        text(spec, "persistentVolumeReclaimPolicy"),
        "Terminating" if leaving else text(volume, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else "",
        _storage_class(volume),
        text(spec, "volumeAttributesClassName", default=UNSET),
        text(volume, "status", "reason"),
        age(volume, now),
        text(spec, "volumeMode", default=UNSET),
    ]


def claim_cells(claim: JsonDict, now: float) -> list[Any]:
    """A claim of a persistent volume."""
    spec, status = part(claim, "spec"), part(claim, "status")
    volume = text(spec, "volumeName")
    leaving = metadata(claim).get("deletionTimestamp")
    return [
        _name(claim),
        "Terminating" if leaving else text(status, "phase"),
        volume,
        text(status, "capacity", "storage", default="0") if volume else "",
        _modes(status) if volume else "",
        _storage_class(claim),
        text(spec, "volumeAttributesClassName", default=UNSET),
        age(claim, now),
        text(spec, "volumeMode", default=UNSET),
    ]


def _modes(holder: JsonDict) -> str:
    asked = items(holder, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in asked)


def _storage_class(object_: JsonDict) -> str:
    old = part(object_, "metadata", "annotations").get(_CLASS)
    return text(object_, "spec", "storageClassName") if old is None else str(old)


def storage_class_cells(storage: JsonDict, now: float) -> list[Any]:
    """A storage class."""
    return [
        _name(storage),
        text(storage, "provisioner"),
        text(storage, "reclaimPolicy", default="Delete"),
        text(storage, "volumeBindingMode", default="Immediate"),
        bool(storage.get("allowVolumeExpansion")),
        age(storage, now),
    ]


def attachment_cells(attachment: JsonDict, now: float) -> list[Any]:
    """A volume attached to a node."""
    return [
        _name(attachment),
        text(attachment, "spec", "attacher"),
        text(attachment, "spec", "source", "persistentVolumeName"),
        text(attachment, "spec", "nodeName"),
        bool(part(attachment, "status").get("attached")),
        age(attachment, now),
    ]


def csi_node_cells(node: JsonDict, now: float) -> list[Any]:
    """The storage drivers of a node."""
    return [_name(node), len(items(node, "spec", "drivers")), age(node, now)]


def csi_driver_cells(driver: JsonDict, now: float) -> list[Any]:
    """A storage driver."""
    spec = part(driver, "spec")
    requests = spec.get("tokenRequests")
    audiences = ",".join(str(each.get("audience", "")) for each in requests or [])
    return [
        _name(driver),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(map(str, items(spec, "volumeLifecycleModes"))) or NONE,
        age(driver, now),
    ]


def capacity_cells(capacity: JsonDict, _now: float) -> list[Any]:
    """How much room a storage class has somewhere."""
    room = text(capacity, "capacity", default=UNSET)
    return [_name(capacity), text(capacity, "storageClassName"), room]


def priority_class_cells(priority: JsonDict, now: float) -> list[Any]:
    """A priority class."""
    return [
        _name(priority),
        number(priority, "value"),
        bool(priority.get("globalDefault")),
        age(priority, now),
        text(priority, "preemptionPolicy"),
    ]


def lease_cells(lease: JsonDict, now: float) -> list[Any]:
    """A lease."""
    return [_name(lease), text(lease, "spec", "holderIdentity"), age(lease, now)]


def config_map_cells(config: JsonDict, now: float) -> list[Any]:
    """A config map."""
    data = len(part(config, "data")) + len(part(config, "binaryData"))
    return [_name(config), data, age(config, now)]


def secret_cells(secret: JsonDict, now: float) -> list[Any]:
    """A secret."""
    return [_name(secret), text(secret, "type"), len(part(secret, "data")), age(secret, now)]


def named_cells(object_: JsonDict, now: float) -> list[Any]:
    """An object with nothing to tell but its age."""
    return [_name(object_), age(object_, now)]


def dated_cells(object_: JsonDict, _now: float) -> list[Any]:
    """An object with nothing to tell but when it was made."""
    return [_name(object_), text(object_, "metadata", "creationTimestamp")]


def quota_cells(quota: JsonDict, now: float) -> list[Any]:
    """A resource quota."""
    used, hard = part(quota, "status", "used"), part(quota, "status", "hard")
    rows: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        rows[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [_name(quota), ", ".join(rows[False]), ", ".join(rows[True]), age(quota, now)]
