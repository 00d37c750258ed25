"""Addresses and ports of services, each given out once.

Upstream: pkg/registry/core/service/ipallocator and portallocator.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import is_leaving, key_of
from podium.objects.kinds.meta import JsonObject

_POOL: Final = 10 << 24 | 128 << 16  # 10.128.0.0/16
_FIRST_PORT, _LAST_PORT = 30_000, 32_767
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


class ServiceAddresses(Controller):
    """Gives services what they did not ask for by name."""

    name: ClassVar = "service-allocator"

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._addresses: dict[str, tuple[str, str]] = {}
        self._ports: dict[int, tuple[str, str]] = {}
        self._next = 0

    def hears(self) -> dict[str, Hearing]:
        """Of services."""
        return {"Service": self.hear_own}

    def hear_own(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Note what is taken, and what is free again."""
        for each in (old, new):
            if each is None:
                continue
            key, taken = key_of(each), each is new
            address = each["spec"].get("clusterIP")
            if address and address != "None":
                _note(self._addresses, address, key, taken=taken)
            for port in each["spec"].get("ports") or ():
                if port.get("nodePort"):
                    _note(self._ports, port["nodePort"], key, taken=taken)
        if new is not None and _wants(new):
            self.add(key_of(new))

    def sync(self, key: Any) -> None:
        """Give one service its address and ports."""
        service = self.cluster.get("Service", *key)
        if service is None or is_leaving(service) or not _wants(service):
            return
        address = service["spec"].get("clusterIP") or self._free_address()

        def given(found: JsonObject) -> None:
            spec = found["spec"]
            spec.setdefault("clusterIP", address)
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
            if spec.get("type") in _WITH_PORTS:
                for port in spec.get("ports") or ():
                    port.setdefault("nodePort", self._free_port(spec))

        self.cluster.change("Service", key, given)

    def _free_address(self) -> str:
        while True:
            self._next = self._next % 65_533 + 1
            number = _POOL + self._next
            text = f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            if text not in self._addresses or len(self._addresses) > 65_000:
                return text

    def _free_port(self, spec: JsonObject) -> int:
        own = {each.get("nodePort") for each in spec.get("ports") or ()}
        free = (
            port
            for port in range(_FIRST_PORT, _LAST_PORT + 1)
            if port not in self._ports and port not in own
        )
        return next(free, _LAST_PORT)


def _note(
    taken_by: dict[Any, tuple[str, str]], what: Any, key: tuple[str, str], *, taken: bool
) -> None:
    if taken:
        taken_by[what] = key
    elif taken_by.get(what) == key:
        del taken_by[what]


def _wants(service: JsonObject) -> bool:
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or not spec.get("ports"):
        return False
    if not spec.get("clusterIP") or not spec.get("clusterIPs"):
        return True
    ports = spec.get("ports") or ()
    return spec.get("type") in _WITH_PORTS and not all(each.get("nodePort") for each in ports)
