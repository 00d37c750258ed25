"""The same objects in another version: events of events.k8s.io, budgets of policy/v1beta1.

Objects are kept in one version; these functions show them in another and read them back.

Upstream: pkg/apis/events/v1/conversion.go, pkg/apis/policy/v1beta1/conversion.go.
"""

from __future__ import annotations

from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import JsonDict

#: Fields of an event in core/v1 and what events.k8s.io/v1 calls them.
_EVENT = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK = {new: old for old, new in _EVENT.items()}


def shown(row: Resource, item: JsonDict) -> JsonDict:
    """A kept object as *row* shows it."""
    if not row.view_of:
        return item
    names = _EVENT if row.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    return made | {"apiVersion": row.group_version}


def kept(row: Resource, item: JsonDict) -> JsonDict:
    """What was sent to *row*, as it is kept."""
    if not row.view_of:
        return item
    names = _BACK if row.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    if row.kind == "Event":
        made.setdefault("involvedObject", {})
    return made | {"apiVersion": stored(row.view_of).group_version}
