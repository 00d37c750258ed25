"""Conversion between versions: events of events.k8s.io/v1, budgets of policy/v1beta1.

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
    if resource.custom is not None:
        return made | {"apiVersion": resource.custom.stored_version}
    return made | {"apiVersion": stored(resource.view_of).group_version}
