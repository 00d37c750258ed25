"""Cluster IPs and node ports of services that were imported without them.

The registry allocates both when a service is created. A service that is put back from a snapshot
is not created anew, so this controller allocates what it lacks, from a range of its own.

Upstream: pkg/registry/core/service/ipallocator and portallocator.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeVar

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import Key, is_terminating, key_of
from podium.objects.kinds.meta import JsonObject

_SERVICE_CIDR: Final = 10 << 24 | 128 << 16  # 10.128.0.0/16
_LAST_IP: Final = 65_533
#: With more IPs in use than this, one may be allocated twice rather than searched for ever.
_NEARLY_FULL: Final = 65_000
_FIRST_PORT, _LAST_PORT = 30_000, 32_767
_WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})
_T = TypeVar("_T")


class ServiceAllocator(Controller[Key]):
    """Allocates a cluster IP and node ports to services that lack them."""

    name: ClassVar = "service-allocator"

    def __init__(self, cluster: Cluster) -> None:
        """Watch services."""
        super().__init__(cluster)
        self._ips: dict[str, Key] = {}
        self._ports: dict[int, Key] = {}
        self._last_ip = 0
        self.watch("Service", self._on_service)

    def _on_service(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for each in (old, new):
            if each is None:
                continue
            key, in_use = key_of(each), each is new
            ip = each["spec"].get("clusterIP")
            if ip and ip != "None":
                _mark(self._ips, ip, key, in_use=in_use)
            for port in each["spec"].get("ports") or ():
                if port.get("nodePort"):
                    _mark(self._ports, port["nodePort"], key, in_use=in_use)
        if new is not None and _lacks_allocation(new):
            self.enqueue(key_of(new))

    def sync(self, key: Key) -> None:
        """Write a cluster IP and node ports into a service that lacks them."""
        service = self.cluster.get("Service", *key)
        if service is None or is_terminating(service) or not _lacks_allocation(service):
            return
        ip = service["spec"].get("clusterIP") or self._free_ip()

        def allocate(found: JsonObject) -> None:
            spec = found["spec"]
            spec.setdefault("clusterIP", ip)
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
            if spec.get("type") in _WITH_NODE_PORTS:
                for port in spec.get("ports") or ():
                    port.setdefault("nodePort", self._free_port(spec))

        self.cluster.update("Service", key, allocate)

    def _free_ip(self) -> str:
        while True:
            self._last_ip = self._last_ip % _LAST_IP + 1
            number = _SERVICE_CIDR + self._last_ip
            text = f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            if text not in self._ips or len(self._ips) > _NEARLY_FULL:
                return text

    def _free_port(self, spec: JsonObject) -> int:
        own = {each.get("nodePort") for each in spec.get("ports") or ()}
        free = (
            port
            for port in range(_FIRST_PORT, _LAST_PORT + 1)
            if port not in self._ports and port not in own
        )
        return next(free, _LAST_PORT)


def _mark(users: dict[_T, Key], value: _T, key: Key, *, in_use: bool) -> None:
    """Note that a service uses a value, or does not use it any more."""
    if in_use:
        users[value] = key
    elif users.get(value) == key:
        del users[value]


def _lacks_allocation(service: JsonObject) -> bool:
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or not spec.get("ports"):
        return False
    if not spec.get("clusterIP") or not spec.get("clusterIPs"):
        return True
    ports = spec.get("ports") or ()
    has_ports = all(each.get("nodePort") for each in ports)
    return spec.get("type") in _WITH_NODE_PORTS and not has_ports
