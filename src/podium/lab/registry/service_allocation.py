"""Allocation of cluster IPs and node ports to services.

Upstream: pkg/registry/core/service (ipallocator, portallocator).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.lab.api.field_errors import invalid_value
from podium.lab.api.status import internal, invalid
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: The IPs of 10.96.0.0/16 without the first and the last.
_IP_COUNT = 2**16 - 2
#: The IP of the service `kubernetes`: the first of the range, as in every cluster.
API_SERVER_IP = "10.96.0.1"
_NODE_PORTS = range(30000, 32768)
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})


def keep_allocated(item: JsonObject, old: JsonObject) -> None:
    """Copy the cluster IP and node ports that an update of a service leaves out."""
    spec, before = item["spec"], old.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    for field in ("clusterIP", "clusterIPs"):
        if field in before:
            spec.setdefault(field, before[field])
    allocated = {each.get("port"): each.get("nodePort") for each in before.get("ports") or ()}
    if spec.get("type") in _WITH_NODE_PORTS:
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and allocated.get(port.get("port")):
                port["nodePort"] = allocated[port["port"]]


def allocate(registry: Registry, item: JsonObject) -> None:
    """Allocate the cluster IP and node ports that a service lacks."""
    spec = item["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_ip(registry)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in _WITH_NODE_PORTS:
        _allocate_ports(registry, item)


def _other_services(registry: Registry, item: JsonObject | None) -> Iterator[JsonObject]:
    own = item and (item["metadata"].get("namespace"), item["metadata"].get("name"))
    for record in registry.store.table("services").records.values():
        if tuple(record.key) != own:
            yield record.object()


def _free_ip(registry: Registry) -> str:
    """A random free IP; the range is far larger than the number of services."""
    records = registry.store.table("services").records.values()
    taken = {each.fields.get("spec.clusterIP") for each in records}
    if len(taken) >= _IP_COUNT:
        raise internal("failed to allocate a serviceIP: range is full")
    while True:
        number = registry.rng.randint(1, _IP_COUNT)
        address = f"10.96.{number >> 8}.{number & 255}"
        if address not in taken:
            return address


def _allocate_ports(registry: Registry, item: JsonObject) -> None:
    taken = {
        port["nodePort"]
        for other in _other_services(registry, item)
        for port in (other.get("spec") or {}).get("ports") or ()
        if port.get("nodePort")
    }
    for index, port in enumerate(item["spec"].get("ports") or ()):
        wanted = port.get("nodePort")
        if wanted:
            _check_port(item, index, wanted, taken)
        else:
            free = [each for each in _NODE_PORTS if each not in taken]
            if not free:
                raise internal("failed to allocate a nodePort: range is full")
            wanted = port["nodePort"] = registry.rng.choice(free)
        taken.add(wanted)


def _check_port(item: JsonObject, index: int, wanted: int, taken: set[int]) -> None:
    why = ""
    if wanted not in _NODE_PORTS:
        ports = f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
        why = f"provided port is not in the valid range. The range of valid ports is {ports}"
    elif wanted in taken:
        why = "provided port is already allocated"
    if why:
        problem = invalid_value(f"spec.ports[{index}].nodePort", wanted, why)
        raise invalid("Service", "", item["metadata"].get("name", ""), [problem])
