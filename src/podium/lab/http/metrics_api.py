"""The metrics API (metrics.k8s.io), from which `kubectl top` reads.

Upstream: k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from typing import Final

from podium.lab.api.encoding import format_time
from podium.lab.api.resources import stored
from podium.lab.api.status import not_found
from podium.lab.http.requests import Request, Route
from podium.lab.registry.registry import Registry
from podium.lab.registry.resource_lists import (
    Amounts,
    add,
    annotated_usage,
    container_usage,
    pod_usage,
    usage_texts,
)
from podium.lab.store.selection import selection
from podium.objects.kinds.meta import JsonObject

_WINDOW: Final = "15s"


def metrics(registry: Registry, request: Request, where: Route) -> JsonObject:
    """The metrics of the pods or nodes that a request asks for."""
    if where.resource.plural == "nodes":
        items = _nodes(registry, request, where)
    else:
        items = _pods(registry, request, where)
    resource = where.resource
    if where.name:
        if not items:
            raise not_found(resource.qualified, where.name)
        return {"kind": resource.kind, "apiVersion": resource.group_version, **items[0]}
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.group_version,
        "metadata": {},
        "items": items,
    }


def _pods(registry: Registry, request: Request, where: Route) -> list[JsonObject]:
    fields = f"metadata.name={where.name}" if where.name else request.parameter("fieldSelector")
    wanted = selection(stored("pods"), request.parameter("labelSelector"), fields)
    found = []
    for record in registry.store.table("pods").ordered(where.namespace):
        if record.fields.get("status.phase") == "Running" and wanted.matches(record):
            pod = record.object()
            containers = [
                {"name": name, "usage": usage_texts(used)}
                for name, used in container_usage(pod).items()
            ]
            found.append(_item(registry, pod) | {"containers": containers})
    return found


def _nodes(registry: Registry, request: Request, where: Route) -> list[JsonObject]:
    fields = f"metadata.name={where.name}" if where.name else request.parameter("fieldSelector")
    wanted = selection(stored("nodes"), request.parameter("labelSelector"), fields)
    used: dict[str, Amounts] = {}
    for record in registry.store.table("pods").records.values():
        node = record.fields.get("spec.nodeName")
        if node and record.fields.get("status.phase") == "Running":
            add(used.setdefault(node, {}), pod_usage(record.object()))
    found = []
    for record in registry.store.table("nodes").ordered():
        if wanted.matches(record):
            node_object = record.object()
            own = used.get(record.key.name, {}) | annotated_usage(node_object)
            found.append(_item(registry, node_object) | {"usage": usage_texts(own)})
    return found


def _item(registry: Registry, item: JsonObject) -> JsonObject:
    metadata = item["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
    now = format_time(registry.clock())
    return {
        "metadata": kept | {"creationTimestamp": now},
        "timestamp": now,
        "window": _WINDOW,
    }
