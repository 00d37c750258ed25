"""Label and field selectors of lists, watches and deletions of collections.

Upstream: apimachinery/pkg/labels, pkg/fields, and the conversions of field labels in pkg/apis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from podium.lab.api.resources import Resource
from podium.lab.api.status import bad_request
from podium.lab.store.store import ObjectVersion
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.names import quoted
from podium.objects.selectors.selectors import (
    NOTHING,
    FieldSelector,
    Selector,
    SelectorError,
    from_label_selector,
    parse_field_selector,
    parse_selector,
)

_ALWAYS = ("metadata.name", "metadata.namespace")
#: The paths of the fields that each resource can be selected by, besides name and namespace.
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
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
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
#: The selectable fields of events.k8s.io and those of core/v1 that they stand for.
_EVENT_FIELDS = {
    "regarding.kind": "involvedObject.kind",
    "regarding.namespace": "involvedObject.namespace",
    "regarding.name": "involvedObject.name",
    "regarding.uid": "involvedObject.uid",
    "regarding.apiVersion": "involvedObject.apiVersion",
    "regarding.resourceVersion": "involvedObject.resourceVersion",
    "regarding.fieldPath": "involvedObject.fieldPath",
    "reportingController": "reportingComponent",
}
#: What absent fields are compared as, if not as the empty string.
_ZERO_VALUES = {"spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0"}


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """A label selector and a field selector for the records of one resource."""

    labels: Selector
    fields: FieldSelector
    #: Whether both selectors are empty.
    everything: bool

    def matches(self, record: ObjectVersion) -> bool:
        """Whether *record* matches both selectors."""
        if self.everything:
            return True
        return self.labels.matches(record.labels) and self._matches_fields(record)

    def _matches_fields(self, record: ObjectVersion) -> bool:
        for wanted in self.fields.requirements:
            if wanted.field == "metadata.name":
                value = record.key.name
            elif wanted.field == "metadata.namespace":
                value = record.key.namespace
            else:
                value = record.fields.get(wanted.field) or _ZERO_VALUES.get(wanted.field, "")
            if not wanted.accepts(value):
                return False
        return True


@lru_cache(maxsize=1024)
def _selection(
    group_version: str, kind: str, storage: str, labels: str, fields: str
) -> ObjectSelection:
    try:
        wanted, conditions = parse_selector(labels), parse_field_selector(fields)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    requirements = []
    renamed = _EVENT_FIELDS if group_version == "events.k8s.io/v1" else {}
    for each in conditions.requirements:
        name = renamed.get(each.field, each.field)
        if name not in _ALWAYS and name not in SELECTABLE.get(storage, ()):
            raise bad_request(_unsupported(kind, each.field))
        requirements.append(type(each)(name, each.equal, each.value))
    chosen = FieldSelector(tuple(requirements))
    return ObjectSelection(wanted, chosen, wanted.empty and not requirements)


#: Kinds with another error for an unknown field.
_KINDS_WITH_OWN_ERROR = frozenset(
    {"Event", "Namespace", "Node", "Pod", "ReplicationController", "Secret"}
)


def _unsupported(kind: str, field: str) -> str:
    """The error for a field by which a kind cannot be selected."""
    if kind in _KINDS_WITH_OWN_ERROR:
        return f"field label not supported: {field}"
    if kind == "Job":
        return f"field label {quoted(field)} not supported for batchv1.Job"
    known = ", ".join(quoted(each) for each in _ALWAYS)
    return f"{quoted(field)} is not a known field selector: only {known}"


def selection(resource: Resource, labels: str = "", fields: str = "") -> ObjectSelection:
    """The selection of a label and a field selector; 400 if either is malformed."""
    return _selection(resource.group_version, resource.kind, resource.storage, labels, fields)


def _reader(path: str) -> Callable[[JsonObject], str]:
    *parents, last = path.split(".")

    def read(item: JsonObject) -> str:
        value: Any = item
        for step in parents:
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


def fields_of(storage: str, item: JsonObject) -> Mapping[str, str]:
    """The values of the selectable fields of an object, empty ones left out."""
    readers = _READERS.get(storage)
    if readers is None:
        return {}
    found = {path: value for path, read in readers if (value := read(item))}
    if storage == "events":
        source = (item.get("source") or {}).get("component") or item.get("reportingComponent")
        if source:
            found["source"] = source
    return found


def compile_selector(written: Any) -> Selector:
    """The selector of a `LabelSelector` field; absent and invalid ones select nothing."""
    return NOTHING if written is None else _compile(msgspec.json.encode(written))


@lru_cache(maxsize=1 << 12)
def _compile(text: bytes) -> Selector:
    try:
        return from_label_selector(msgspec.json.decode(text, type=LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING
