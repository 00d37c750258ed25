"""The endpoints controller: Endpoints and EndpointSlices of services with a selector.

Upstream: pkg/controller/endpoint and pkg/controller/endpointslice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster, deep_copy
from podium.lab.controllers.framework.controller import PodSelectingController, controller_ref
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    key_of,
    labels_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import NOTHING, Selector, from_map_literal

#: The most addresses of a service, as in kube-controller-manager.
_MAX_ADDRESSES: Final = 1000
_MAX_SLICE: Final = 100
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_MANAGER_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class EndpointsController(PodSelectingController):
    """Writes the addresses of the pods that services select."""

    name: ClassVar = "endpoint-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch services and pods."""
        super().__init__(cluster, "Service")

    def selector_of(self, item: JsonObject) -> Selector:
        """The `spec.selector` of a service; without one, no pod is selected."""
        selector = item["spec"].get("selector")
        return from_map_literal(selector) if selector else NOTHING

    def is_relevant(self, old: PodInfo, new: PodInfo) -> bool:
        """IP, readiness, deletion and labels of a pod decide whether it is an endpoint."""
        return (
            old.ip != new.ip
            or old.ready != new.ready
            or old.active != new.active
            or old.labels is not new.labels
        )

    def sync(self, key: Key) -> None:
        """Write the endpoints of a service; delete them with it."""
        service = self.cluster.get("Service", *key)
        if service is None:
            self._delete_endpoints(key)
            return
        if not service["spec"].get("selector") or is_terminating(service):
            return
        pods = [pod for pod in self.selected_pods(service) if pod.ip and pod.active]
        pods = sorted(pods, key=lambda pod: pod.key)[:_MAX_ADDRESSES]
        ports = self._ports(service, pods)
        self._write_endpoints(service, pods, ports)
        self._write_slices(service, pods, ports)

    def _delete_endpoints(self, key: Key) -> None:
        """Delete the Endpoints; the garbage collector deletes the slices, which have an owner."""
        found = self.cluster.get("Endpoints", *key)
        if found is not None:
            self.cluster.delete(found)

    def _ports(self, service: JsonObject, pods: list[PodInfo]) -> list[JsonObject]:
        found = []
        for port in service["spec"].get("ports") or ():
            target = port.get("targetPort", port.get("port"))
            if isinstance(target, str):
                target = self._named_port(target, pods)
            if target is not None:
                made = {"port": target, "protocol": port.get("protocol", "TCP")}
                found.append({"name": port["name"], **made} if port.get("name") else made)
        return found

    def _named_port(self, name: str, pods: list[PodInfo]) -> int | None:
        """The number of a named container port, taken from the first pod for all of them."""
        pod = self.cluster.get("Pod", *pods[0].key) if pods else None
        for container in () if pod is None else pod["spec"].get("containers") or ():
            for port in container.get("ports") or ():
                if port.get("name") == name:
                    return int(port["containerPort"])
        return None

    def _write_endpoints(
        self, service: JsonObject, pods: list[PodInfo], ports: list[JsonObject]
    ) -> None:
        publish_all = bool(service["spec"].get("publishNotReadyAddresses"))
        subset: JsonObject = {}
        ready = [_address(pod) for pod in pods if pod.ready or publish_all]
        not_ready = [_address(pod) for pod in pods if not (pod.ready or publish_all)]
        if ready:
            subset["addresses"] = ready
        if not_ready:
            subset["notReadyAddresses"] = not_ready
        if subset and ports:
            subset["ports"] = ports
        wanted = {"subsets": [subset]} if subset else {}
        present = self.cluster.get("Endpoints", *key_of(service))
        if present is None:
            namespace, name = key_of(service)
            metadata = {"name": name, "namespace": namespace, "labels": labels_of(service)}
            made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, **wanted}
            self.cluster.create("Endpoints", made)
        elif (present.get("subsets") or []) != wanted.get("subsets", []):
            self.cluster.update(
                "Endpoints", key_of(service), lambda it: _replace_subsets(it, wanted)
            )

    def _write_slices(
        self, service: JsonObject, pods: list[PodInfo], ports: list[JsonObject]
    ) -> None:
        publish_all = bool(service["spec"].get("publishNotReadyAddresses"))
        parts = [pods[at : at + _MAX_SLICE] for at in range(0, len(pods), _MAX_SLICE)] or [[]]
        namespace, name = key_of(service)
        for number, part in enumerate(parts):
            key = (namespace, f"{name}-lab{number}")
            wanted: JsonObject = {
                "ports": [{"name": "", **port} for port in ports],
                "endpoints": [self._endpoint(pod, ready=pod.ready or publish_all) for pod in part],
            }
            present = self.cluster.get("EndpointSlice", *key)
            if present is None:
                self.cluster.create("EndpointSlice", self._slice(service, key[1]) | wanted)
            elif any((present.get(field) or []) != value for field, value in wanted.items()):
                self.cluster.update("EndpointSlice", key, _setter(wanted))
        number = len(parts)
        while surplus := self.cluster.get("EndpointSlice", namespace, f"{name}-lab{number}"):
            self.cluster.delete(surplus)
            number += 1

    def _slice(self, service: JsonObject, name: str) -> JsonObject:
        namespace, service_name = key_of(service)
        labels = {_SERVICE_LABEL: service_name, _MANAGER_LABEL: "endpointslice-controller.k8s.io"}
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**labels_of(service), **labels},
                "ownerReferences": [controller_ref(service)],
            },
            "addressType": "IPv4",
        }

    def _endpoint(self, pod: PodInfo, *, ready: bool) -> JsonObject:
        node = self.cluster.get("Node", "", pod.node)
        found: JsonObject = {
            "addresses": [pod.ip],
            "conditions": {"ready": ready, "serving": pod.ready, "terminating": False},
            "nodeName": pod.node,
            "targetRef": _target_ref(pod),
        }
        zone = next((z for key in _ZONE_LABELS if node and (z := labels_of(node).get(key))), "")
        return {**found, "zone": zone} if zone else found


def _address(pod: PodInfo) -> JsonObject:
    return {"ip": pod.ip, "nodeName": pod.node, "targetRef": _target_ref(pod)}


def _target_ref(pod: PodInfo) -> JsonObject:
    return {"kind": "Pod", "namespace": pod.key[0], "name": pod.key[1], "uid": pod.uid}


def _setter(fields: JsonObject) -> Callable[[JsonObject], None]:
    return lambda item: item.update(deep_copy(fields))


def _replace_subsets(endpoints: JsonObject, wanted: JsonObject) -> None:
    endpoints.pop("subsets", None)
    endpoints.update(deep_copy(wanted))
