"""Conversion between versions: events.k8s.io/v1, policy/v1beta1 and autoscaling/v1.

An object is stored in one version only. A resource that serves another version of it converts it
on the way out with `to_served` and on the way in with `to_stored`.

Upstream: pkg/apis/events/v1/conversion.go, pkg/apis/policy/v1beta1/conversion.go.
"""

from __future__ import annotations

from podium.lab.api.resources import Resource, stored
from podium.objects.kinds.meta import JsonObject

#: Names of the fields of an event in core/v1 and in events.k8s.io/v1.
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_STORED_EVENT_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}


def to_served(resource: Resource, item: JsonObject) -> JsonObject:
    """A stored object in the version of *resource*."""
    if not resource.view_of:
        return item
    if resource.kind == "HorizontalPodAutoscaler":
        return _autoscaler_v1(item) | {"apiVersion": resource.group_version}
    names = _EVENT_FIELDS if resource.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    return made | {"apiVersion": resource.group_version}


def to_stored(resource: Resource, item: JsonObject) -> JsonObject:
    """An object in the version of *resource*, in the version in which it is stored."""
    if not resource.view_of:
        return item
    names = _STORED_EVENT_FIELDS if resource.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    if resource.kind == "Event":
        made.setdefault("involvedObject", {})
    if resource.kind == "HorizontalPodAutoscaler" and resource.custom is None:
        made = _autoscaler_v2(made)
    if resource.custom is not None:
        return made | {"apiVersion": resource.custom.stored_version}
    return made | {"apiVersion": stored(resource.view_of).group_version}


def _autoscaler_v1(item: JsonObject) -> JsonObject:
    """An autoscaler of autoscaling/v2 in v1, which knows the utilization of CPU only."""
    spec, status = dict(item.get("spec") or {}), dict(item.get("status") or {})
    for metric in spec.pop("metrics", None) or ():
        utilization = _cpu_utilization(metric, "target")
        if utilization is not None:
            spec["targetCPUUtilizationPercentage"] = utilization
    spec.pop("behavior", None)
    status.pop("conditions", None)
    for metric in status.pop("currentMetrics", None) or ():
        utilization = _cpu_utilization(metric, "current")
        if utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization
    return item | {"spec": spec, "status": status}


def _cpu_utilization(metric: JsonObject, part: str) -> int | None:
    source = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    found: int | None = (source.get(part) or {}).get("averageUtilization")
    return found


def _autoscaler_v2(item: JsonObject) -> JsonObject:
    """An autoscaler of autoscaling/v1 in v2."""
    spec, status = dict(item.get("spec") or {}), dict(item.get("status") or {})
    wanted = spec.pop("targetCPUUtilizationPercentage", None)
    if wanted is not None:
        target = {"type": "Utilization", "averageUtilization": wanted}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status.pop("currentCPUUtilizationPercentage", None)
    made = item | {"spec": spec}
    return made | {"status": status} if "status" in item else made
