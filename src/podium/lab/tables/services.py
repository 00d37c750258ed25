"""Tables of services and their endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.tables.formats import NONE, UNKNOWN, age, first_three, labels_text
from podium.lab.tables.object_fields import list_at, name_of, object_at, text_at
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject


def _service_cells(service: JsonObject, now: float) -> list[Any]:
    spec = object_at(service, "spec")
    addresses = list_at(spec, "clusterIPs")
    ports = []
    for each in list_at(spec, "ports"):
        own = f":{each['nodePort']}" if each.get("nodePort") else ""
        ports.append(f"{each.get('port')}{own}/{each.get('protocol', 'TCP')}")
    return [
        name_of(service),
        text_at(spec, "type"),
        str(addresses[0]) if addresses else text_at(spec, "clusterIP", default=NONE),
        _external_address(service),
        ",".join(ports) or NONE,
        age(service, now),
        labels_text(object_at(spec, "selector")),
    ]


def _external_address(service: JsonObject) -> str:
    spec = object_at(service, "spec")
    kind, external = text_at(spec, "type"), ",".join(map(str, list_at(spec, "externalIPs")))
    if kind in ("ClusterIP", "NodePort"):
        return external or NONE
    if kind == "LoadBalancer":
        given = list_at(service, "status", "loadBalancer", "ingress")
        found = sorted({str(each.get("ip") or each.get("hostname") or "") for each in given} - {""})
        return ",".join([*found, *([external] if external else [])]) or "<pending>"
    return text_at(spec, "externalName") if kind == "ExternalName" else UNKNOWN


def _endpoints_cells(endpoints: JsonObject, now: float) -> list[Any]:
    found = []
    for subset in list_at(endpoints, "subsets"):
        addresses = [str(each.get("ip")) for each in list_at(subset, "addresses")]
        ports = list_at(subset, "ports")
        if not ports:
            found += addresses
        for port in ports:
            found += [
                f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}"
                for ip in addresses
            ]
    shown = first_three(found, empty="" if list_at(endpoints, "subsets") else NONE)
    return [name_of(endpoints), shown, age(endpoints, now)]


def _endpoint_slice_cells(slice_: JsonObject, now: float) -> list[Any]:
    ports = (str(each.get("port") or each.get("name") or "*") for each in list_at(slice_, "ports"))
    addresses = (
        str(ip) for each in list_at(slice_, "endpoints") for ip in list_at(each, "addresses")
    )
    return [
        name_of(slice_),
        text_at(slice_, "addressType"),
        first_three(ports),
        first_three(addresses),
        age(slice_, now),
    ]


PRINTERS: Mapping[str, Printer] = {
    "Endpoints": Printer("Name, Endpoints, Age", _endpoints_cells),
    "EndpointSlice": Printer("Name, AddressType, Ports, Endpoints, Age", _endpoint_slice_cells),
    "Service": Printer(
        "Name, Type, Cluster-IP, External-IP, Port(s), Age, *Selector",
        _service_cells,
    ),
}
