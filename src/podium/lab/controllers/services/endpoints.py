"""Endpoints of services: the addresses of the pods that a service selects.

Upstream: pkg/controller/endpoint and pkg/controller/endpointslice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.cluster import copied
from podium.lab.controllers.framework.controller_ref import reference
from podium.lab.controllers.framework.object_fields import is_leaving, key_of, labels_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.framework.pod_selecting_controller import SelectsPods
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import NOTHING, Selector, from_map_literal

#: No more addresses than this are listed, as upstream.
_MOST: Final = 1000
_SLICE: Final = 100
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_MANAGER_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class ServiceEndpoints(SelectsPods):
    """Keeps Endpoints and EndpointSlices of services that have a selector."""

    name: ClassVar = "endpoint-controller"
    kind: ClassVar = "Service"

    def selects(self, item: JsonObject) -> Selector:
        """Which pods a service sends to."""
        wanted = item["spec"].get("selector")
        return from_map_literal(wanted) if wanted else NOTHING

    def matters(self, old: PodFacts, new: PodFacts) -> bool:
        """Only addresses, readiness and labels count."""
        return (
            old.ip != new.ip
            or old.ready != new.ready
            or old.active != new.active
            or old.labels is not new.labels
        )

    def sync(self, key: Any) -> None:
        """Write the addresses down."""
        service = self.cluster.get("Service", *key)
        if service is None:
            self._drop(key)
            return
        if not service["spec"].get("selector") or is_leaving(service):
            return
        pods = [pod for pod in self.selected(service) if pod.ip and pod.active]
        pods = sorted(pods, key=lambda pod: pod.key)[:_MOST]
        ports = self._ports(service, pods)
        self._write_endpoints(service, pods, ports)
        self._write_slices(service, pods, ports)

    def _drop(self, key: Any) -> None:
        """The service is gone; slices go with their owner."""
        found = self.cluster.get("Endpoints", *key)
        if found is not None:
            self.cluster.delete(found)

    def _ports(self, service: JsonObject, pods: list[PodFacts]) -> list[JsonObject]:
        found = []
        for port in service["spec"].get("ports") or ():
            target = port.get("targetPort", port.get("port"))
            if isinstance(target, str):
                target = self._named_port(target, pods)
            if target is not None:
                made = {"port": target, "protocol": port.get("protocol", "TCP")}
                found.append({"name": port["name"], **made} if port.get("name") else made)
        return found

    def _named_port(self, name: str, pods: list[PodFacts]) -> int | None:
        """The number of a port of the first pod; all pods of a service are much alike."""
        pod = self.cluster.get("Pod", *pods[0].key) if pods else None
        for container in () if pod is None else pod["spec"].get("containers") or ():
            for port in container.get("ports") or ():
                if port.get("name") == name:
                    return int(port["containerPort"])
        return None

    def _write_endpoints(
        self, service: JsonObject, pods: list[PodFacts], ports: list[JsonObject]
    ) -> None:
        always = bool(service["spec"].get("publishNotReadyAddresses"))
        subset: JsonObject = {}
        ready = [_address(pod) for pod in pods if pod.ready or always]
        waiting = [_address(pod) for pod in pods if not (pod.ready or always)]
        if ready:
            subset["addresses"] = ready
        if waiting:
            subset["notReadyAddresses"] = waiting
        if subset and ports:
            subset["ports"] = ports
        wished = {"subsets": [subset]} if subset else {}
        present = self.cluster.get("Endpoints", *key_of(service))
        if present is None:
            namespace, name = key_of(service)
            metadata = {"name": name, "namespace": namespace, "labels": labels_of(service)}
            made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, **wished}
            self.cluster.create("Endpoints", made)
        elif (present.get("subsets") or []) != wished.get("subsets", []):
            self.cluster.change("Endpoints", key_of(service), lambda it: _replace(it, wished))

    def _write_slices(
        self, service: JsonObject, pods: list[PodFacts], ports: list[JsonObject]
    ) -> None:
        always = bool(service["spec"].get("publishNotReadyAddresses"))
        parts = [pods[at : at + _SLICE] for at in range(0, len(pods), _SLICE)] or [[]]
        namespace, name = key_of(service)
        for number, part in enumerate(parts):
            called = (namespace, f"{name}-lab{number}")
            wished: JsonObject = {
                "ports": [{"name": "", **port} for port in ports],
                "endpoints": [self._endpoint(pod, ready=pod.ready or always) for pod in part],
            }
            present = self.cluster.get("EndpointSlice", *called)
            if present is None:
                self.cluster.create("EndpointSlice", self._slice(service, called[1]) | wished)
            elif any((present.get(what) or []) != value for what, value in wished.items()):
                self.cluster.change("EndpointSlice", called, _updating(wished))
        number = len(parts)
        while extra := self.cluster.get("EndpointSlice", namespace, f"{name}-lab{number}"):
            self.cluster.delete(extra)
            number += 1

    def _slice(self, service: JsonObject, name: str) -> JsonObject:
        namespace, of = key_of(service)
        labels = {_SERVICE_LABEL: of, _MANAGER_LABEL: "endpointslice-controller.k8s.io"}
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**labels_of(service), **labels},
                "ownerReferences": [reference(service)],
            },
            "addressType": "IPv4",
        }

    def _endpoint(self, pod: PodFacts, *, ready: bool) -> JsonObject:
        node = self.cluster.get("Node", "", pod.node)
        found: JsonObject = {
            "addresses": [pod.ip],
            "conditions": {"ready": ready, "serving": pod.ready, "terminating": False},
            "nodeName": pod.node,
            "targetRef": _target(pod),
        }
        zone = next((z for key in _ZONES if node and (z := labels_of(node).get(key))), "")
        return {**found, "zone": zone} if zone else found


def _address(pod: PodFacts) -> JsonObject:
    return {"ip": pod.ip, "nodeName": pod.node, "targetRef": _target(pod)}


def _target(pod: PodFacts) -> JsonObject:
    return {"kind": "Pod", "namespace": pod.key[0], "name": pod.key[1], "uid": pod.uid}


def _updating(wished: JsonObject) -> Callable[[JsonObject], None]:
    return lambda item: item.update(copied(wished))


def _replace(item: JsonObject, wished: JsonObject) -> None:
    item.pop("subsets", None)
    item.update(copied(wished))
