"""Label and field selectors of lists and watches.

Upstream: apimachinery/pkg/labels, pkg/fields, and the conversions of field labels in pkg/apis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request
from podium.lab.store.store import Record
from podium.objects.names import quoted
from podium.objects.selectors.selectors import (
    FieldSelector,
    Selector,
    SelectorError,
    parse,
    parse_fields,
)

_ALWAYS = ("metadata.name", "metadata.namespace")
#: The fields that selectors may ask for besides name and namespace, as paths into the object.
SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
}
#: events.k8s.io calls the same things otherwise.
_EVENTS = {
    "regarding.kind": "involvedObject.kind",
    "regarding.namespace": "involvedObject.namespace",
    "regarding.name": "involvedObject.name",
    "regarding.uid": "involvedObject.uid",
    "regarding.apiVersion": "involvedObject.apiVersion",
    "regarding.resourceVersion": "involvedObject.resourceVersion",
    "regarding.fieldPath": "involvedObject.fieldPath",
    "reportingController": "reportingComponent",
}
#: What an absent value reads as, where it is not the empty text.
_ZERO = {"spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records of a resource are wanted."""

    labels: Selector
    fields: FieldSelector
    everything: bool

    def matches(self, record: Record) -> bool:
        """Whether this one is."""
        if self.everything:
            return True
        return self.labels.matches(record.labels) and self.has(record)

    def has(self, record: Record) -> bool:
        """Whether its fields are as wanted."""
        for wanted in self.fields.requirements:
            if wanted.field == "metadata.name":
                value = record.key.name
            elif wanted.field == "metadata.namespace":
                value = record.key.namespace
            else:
                value = record.fields.get(wanted.field) or _ZERO.get(wanted.field, "")
            if not wanted.accepts(value):
                return False
        return True


@lru_cache(maxsize=1024)
def _selection(group_version: str, kind: str, storage: str, labels: str, fields: str) -> Selection:
    try:
        wanted = parse(labels)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    try:
        conditions = parse_fields(fields)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    requirements = []
    other = _EVENTS if group_version == "events.k8s.io/v1" else {}
    for each in conditions.requirements:
        name = other.get(each.field, each.field)
        if name not in _ALWAYS and name not in SELECTABLE.get(storage, ()):
            raise bad_request(_unsupported(kind, each.field))
        requirements.append(type(each)(name, each.equal, each.value))
    chosen = FieldSelector(tuple(requirements))
    return Selection(wanted, chosen, wanted.empty and not requirements)


#: Kinds whose refusal of a field has words of its own, from a time before the general sentence.
_OWN_WORDS = frozenset({"Event", "Namespace", "Node", "Pod", "ReplicationController", "Secret"})


def _unsupported(kind: str, field: str) -> str:
    """The sentence for a field that cannot be asked for."""
    if kind in _OWN_WORDS:
        return f"field label not supported: {field}"
    if kind == "Job":
        return f"field label {quoted(field)} not supported for batchv1.Job"
    known = ", ".join(quoted(each) for each in _ALWAYS)
    return f"{quoted(field)} is not a known field selector: only {known}"


def selection(row: Resource, labels: str = "", fields: str = "") -> Selection:
    """What the two selectors of a request stand for; 400 for those that mean nothing."""
    return _selection(row.group_version, row.kind, row.storage, labels, fields)


def _reader(path: str) -> Callable[[JsonDict], str]:
    *way, last = path.split(".")

    def read(item: JsonDict) -> str:
        value: Any = item
        for step in way:
            value = value.get(step)
            if not value:
                return ""
        value = value.get(last)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


_READERS = {
    storage: [(path, _reader(path)) for path in paths if path != "source"]
    for storage, paths in SELECTABLE.items()
}


def fields_of(storage: str, item: JsonDict) -> Mapping[str, str]:
    """The selectable fields of an object that are not empty."""
    readers = _READERS.get(storage)
    if readers is None:
        return {}
    found = {path: value for path, read in readers if (value := read(item))}
    if storage == "events":
        source = (item.get("source") or {}).get("component") or item.get("reportingComponent")
        if source:
            found["source"] = source
    return found
