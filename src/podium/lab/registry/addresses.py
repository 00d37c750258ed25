"""Addresses and node ports of services: taken from a range, each given once.

Upstream: pkg/registry/core/service (ipallocator, portallocator).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.lab.api.field_errors import invalid_value
from podium.lab.api.status import JsonDict, internal, invalid

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: 10.96.0.0/16 without its ends.
_ADDRESSES = 2**16 - 2
_PORTS = range(30000, 32768)
_WITH_PORTS = frozenset({"NodePort", "LoadBalancer"})


def keep(item: JsonDict, old: JsonDict) -> None:
    """A service that is replaced keeps what it was given and does not mention."""
    spec, before = item["spec"], old.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    for field in ("clusterIP", "clusterIPs"):
        if field in before:
            spec.setdefault(field, before[field])
    given = {each.get("port"): each.get("nodePort") for each in before.get("ports") or ()}
    if spec.get("type") in _WITH_PORTS:
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and given.get(port.get("port")):
                port["nodePort"] = given[port["port"]]


def assign(registry: Registry, item: JsonDict) -> None:
    """Give a service what it lacks."""
    spec = item["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _address(registry)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in _WITH_PORTS:
        _assign_ports(registry, item)


def _others(registry: Registry, item: JsonDict | None) -> Iterator[JsonDict]:
    own = item and (item["metadata"].get("namespace"), item["metadata"].get("name"))
    for record in registry.store.table("services").records.values():
        if tuple(record.key) != own:
            yield record.object()


def _address(registry: Registry) -> str:
    """A free address; the range is far larger than the number of services."""
    records = registry.store.table("services").records.values()
    taken = {each.fields.get("spec.clusterIP") for each in records}
    if len(taken) >= _ADDRESSES:
        raise internal("failed to allocate a serviceIP: range is full")
    while True:
        number = registry.chance.randint(1, _ADDRESSES)
        address = f"10.96.{number >> 8}.{number & 255}"
        if address not in taken:
            return address


def _assign_ports(registry: Registry, item: JsonDict) -> None:
    taken = {
        port["nodePort"]
        for other in _others(registry, item)
        for port in (other.get("spec") or {}).get("ports") or ()
        if port.get("nodePort")
    }
    for index, port in enumerate(item["spec"].get("ports") or ()):
        wanted = port.get("nodePort")
        if wanted:
            _check(item, index, wanted, taken)
        else:
            free = [each for each in _PORTS if each not in taken]
            if not free:
                raise internal("failed to allocate a nodePort: range is full")
            wanted = port["nodePort"] = registry.chance.choice(free)
        taken.add(wanted)


def _check(item: JsonDict, index: int, wanted: int, taken: set[int]) -> None:
    why = ""
    if wanted not in _PORTS:
        ports = f"{_PORTS[0]}-{_PORTS[-1]}"
        why = f"provided port is not in the valid range. The range of valid ports is {ports}"
    elif wanted in taken:
        why = "provided port is already allocated"
    if why:
        problem = invalid_value(f"spec.ports[{index}].nodePort", wanted, why)
        raise invalid("Service", "", item["metadata"].get("name", ""), [problem])
