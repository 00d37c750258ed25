"""Services, endpoints and endpoint slices: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from podium.lab.api.status import (
    FieldErrors,
    duplicate,
    invalid_value,
    required,
)
from podium.lab.kinds.field_checks import (
    port_name_reasons,
    validate_choice,
    validate_labels,
    validate_name,
)
from podium.lab.kinds.kind import (
    NONE,
    UNKNOWN,
    KindStrategy,
    Printer,
    first_three,
    labels_cell,
    list_at,
    object_at,
    text_at,
)
from podium.lab.kinds.pod import PROTOCOLS, validate_port_number
from podium.objects.field_errors import dns_1035_label_reasons
from podium.objects.kinds.meta import JsonObject

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def set_service_defaults(item: JsonObject) -> None:
    """Set the defaults of a service."""
    spec = item.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if "targetPort" not in port and "port" in port:
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")


def validate_service(item: JsonObject) -> FieldErrors:
    """Validate a service: its type, ports, selector, session affinity and cluster IP."""
    spec = item["spec"]
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    yield from _validate_service_ports(spec.get("ports") or [])
    if spec.get("selector"):
        yield from validate_labels(spec["selector"], "spec.selector")
    yield from validate_choice(
        spec.get("sessionAffinity"), "spec.sessionAffinity", ("ClientIP", "None")
    )
    yield from validate_choice(kind, "spec.type", _SERVICE_TYPES)
    address = spec.get("clusterIP")
    if address and not headless and not _is_address(address):
        yield invalid_value(
            "spec.clusterIPs[0]",
            address,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _validate_service_ports(ports: list[JsonObject]) -> FieldErrors:
    seen: set[tuple[str, int]] = set()
    names: set[str] = set()
    for index, each in enumerate(ports):
        here = f"spec.ports[{index}]"
        name = each.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{here}.name")
        elif name and name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)
        number, protocol = each.get("port") or 0, each.get("protocol") or ""
        yield from validate_port_number(number, f"{here}.port")
        yield from validate_choice(protocol, f"{here}.protocol", PROTOCOLS)
        yield from _validate_target_port(each.get("targetPort") or number, f"{here}.targetPort")
        if (protocol, number) in seen:
            yield duplicate(here, each)
        seen.add((protocol, number))


def _validate_target_port(target: int | str, path: str) -> FieldErrors:
    if isinstance(target, str):
        yield from validate_name(target, path, port_name_reasons)
    else:
        yield from validate_port_number(target, path)


def validate_service_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a service: its cluster IP cannot change once set."""
    new, before = item["spec"].get("clusterIP"), old["spec"].get("clusterIP")
    if before and new and new != before and item["spec"].get("type") != "ExternalName":
        yield invalid_value("spec.clusterIPs[0]", [new], "may not change once set")


def _cluster_address(service: JsonObject, _now: float) -> str:
    addresses = list_at(service, "spec", "clusterIPs")
    return str(addresses[0]) if addresses else text_at(service, "spec", "clusterIP", default=NONE)


def _ports(service: JsonObject, _now: float) -> str:
    ports = []
    for each in list_at(service, "spec", "ports"):
        own = f":{each['nodePort']}" if each.get("nodePort") else ""
        ports.append(f"{each.get('port')}{own}/{each.get('protocol', 'TCP')}")
    return ",".join(ports) or NONE


def _external_address(service: JsonObject, _now: float) -> str:
    spec = object_at(service, "spec")
    kind, external = text_at(spec, "type"), ",".join(map(str, list_at(spec, "externalIPs")))
    if kind in ("ClusterIP", "NodePort"):
        return external or NONE
    if kind == "LoadBalancer":
        given = list_at(service, "status", "loadBalancer", "ingress")
        found = sorted({str(each.get("ip") or each.get("hostname") or "") for each in given} - {""})
        return ",".join([*found, *([external] if external else [])]) or "<pending>"
    return text_at(spec, "externalName") if kind == "ExternalName" else UNKNOWN


def _addresses_and_ports(endpoints: JsonObject, _now: float) -> str:
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
    return first_three(found, empty="" if list_at(endpoints, "subsets") else NONE)


def _slice_ports(slice_: JsonObject, _now: float) -> str:
    ports = list_at(slice_, "ports")
    return first_three(str(each.get("port") or each.get("name") or "*") for each in ports)


def _slice_addresses(slice_: JsonObject, _now: float) -> str:
    endpoints = list_at(slice_, "endpoints")
    return first_three(str(ip) for each in endpoints for ip in list_at(each, "addresses"))


KINDS: Mapping[str, KindStrategy] = {
    "EndpointSlice": KindStrategy(
        table=Printer(
            "Name, AddressType=addressType, Ports, Endpoints, Age",
            {"Ports": _slice_ports, "Endpoints": _slice_addresses},
        )
    ),
    "Endpoints": KindStrategy(
        allows_create_on_update=True,
        table=Printer("Name, Endpoints, Age", {"Endpoints": _addresses_and_ports}),
    ),
    "Service": KindStrategy(
        set_defaults=set_service_defaults,
        new_status={"loadBalancer": {}},
        name_rule=dns_1035_label_reasons,
        validate=validate_service,
        validate_update=validate_service_update,
        table=Printer(
            "Name, Type=spec.type, Cluster-IP, External-IP, Port(s), Age, *Selector",
            {
                "Cluster-IP": _cluster_address,
                "External-IP": _external_address,
                "Port(s)": _ports,
                "Selector": labels_cell("spec", "selector"),
            },
        ),
    ),
}
