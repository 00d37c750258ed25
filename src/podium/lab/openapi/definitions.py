"""Schemas of the OpenAPI documents: the models under the names that Kubernetes gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from podium.lab.api.resources import TABLE, Resource
from podium.lab.api.status import JsonDict
from podium.lab.schema import api_types as schema
from podium.lab.schema.merge_keys import ATOMIC, ATOMIC_TYPES, MergeKeys, merge_keys

V2, V3 = "#/definitions/", "#/components/schemas/"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_TYPES = """
    Condition DeleteOptions LabelSelector LabelSelectorRequirement ListMeta ManagedFieldsEntry
    ObjectMeta OwnerReference Preconditions ShardInfo Status StatusCause StatusDetails
"""
#: Which types belong to which group; all others are of the core group.
_GROUPS = (
    (_META, "|".join(_META_TYPES.split())),
    ("apps", r"(DaemonSet|Deployment|ReplicaSet|StatefulSet|RollingUpdate|ControllerRevision)\w*"),
    ("batch", r"(Job|CronJob|UncountedTerminatedPods|PodFailurePolicy|SuccessPolicy)\w*"),
    ("policy", r"PodDisruptionBudget\w*|Eviction"),
    ("autoscaling", r"Scale|ScaleSpec|ScaleStatus"),
    ("storage", r"(StorageClass|CSIDriver|CSINode|CSIStorageCapacity|VolumeAttachment)\w*"),
    ("storage", r"VolumeError|VolumeNodeResources|TokenRequest"),
    ("coordination", r"Lease\w*"),
    ("scheduling", r"PriorityClass\w*"),
    ("discovery", r"EndpointSlice\w*|Endpoint|EndpointConditions|EndpointHints|ForZone|ForNode"),
    ("authentication", r"SelfSubjectReview\w*|UserInfo"),
    ("authorization", r"(SelfSubjectAccess|SelfSubjectRules)Review\w*|FieldSelector\w+"),
    ("authorization", r"(SubjectAccess|SubjectRules)Review\w*|(Non)?Resource(Attributes|Rule)"),
    ("authorization", r"LabelSelectorAttributes"),
)
_GROUP_OF = tuple((group, re.compile(pattern)) for group, pattern in _GROUPS)
_QUALIFIED = {"CoreV1": "core", "EventsV1": "events", "DiscoveryV1": "discovery"}

#: Types that are no models, by the names they have.
_NAMED = {
    schema.TIME: f"{_META}.Time",
    schema.MICRO_TIME: f"{_META}.MicroTime",
    schema.FIELDS: f"{_META}.FieldsV1",
    schema.QUANTITY: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    schema.INT_OR_STRING: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
_PLAIN: dict[str, JsonDict] = {
    schema.STRING: {"type": "string"},
    schema.INTEGER: {"type": "integer", "format": "int32"},
    schema.LONG: {"type": "integer", "format": "int64"},
    schema.BOOLEAN: {"type": "boolean"},
    schema.ANY: {"type": "object"},
    schema.BYTES: {"type": "string", "format": "byte"},
}
PATCH = f"{_META}.Patch"


def definition_name(model: str, version: str = "v1") -> str:
    """The name of a model's schema: `io.k8s.api.core.v1.Pod`."""
    short = schema.short_name(model)
    for prefix, group in _QUALIFIED.items():
        if model.startswith(prefix):
            return f"io.k8s.api.{group}.v1.{short}"
    group = next((group for group, pattern in _GROUP_OF if pattern.fullmatch(short)), "core")
    if group == _META:
        return f"{_META}.{short}"
    beta = version if group == "policy" and short.startswith("PodDisruptionBudget") else "v1"
    return f"io.k8s.api.{group}.{beta}.{short}"


def roots(resources: Iterable[Resource]) -> list[tuple[str, str, JsonDict]]:
    """The models that these resources show, each with its version and what it is."""
    found: dict[tuple[str, str], JsonDict] = {}

    def add(model: str, group: str, version: str, kind: str) -> None:
        if schema.has_model(model):
            found[model, version] = {"group": group, "kind": kind, "version": version}

    for each in resources:
        model = schema.model_of_kind(each.kind, each.group_version)
        add(model, each.group, each.version, each.kind)
        if "list" in each.verbs:
            add(f"{model}List", each.group, each.version, each.list_kind)
        for below in each.subresources.values():
            group = each.group if below.group is None else below.group
            version = below.version or each.version
            add(schema.model_of_kind(below.kind), group, version, below.kind)
    add("V1DeleteOptions", "", "v1", "DeleteOptions")
    add("V1Status", "", "v1", "Status")
    return [(model, version, what) for (model, version), what in found.items()]


def definitions(resources: Iterable[Resource] = TABLE, style: str = V2) -> dict[str, JsonDict]:
    """The schemas of these resources and of all that they refer to."""
    found = {name: dict(each) for name, each in _scalar_definitions(style).items()}
    for model, version, what in roots(resources):
        for each in schema.reachable(model):
            name = definition_name(each, version)
            if name not in found:
                found[name] = _definition(each, version, style)
        root = found[definition_name(model, version)]
        kinds = root.setdefault("x-kubernetes-group-version-kind", [])
        if what not in kinds:
            kinds.append(what)
    return dict(sorted(found.items()))


def _scalar_definitions(style: str) -> dict[str, JsonDict]:
    either: JsonDict = (
        {"type": "string"} if style == V2 else {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    )
    quantity: JsonDict = (
        {"type": "string"} if style == V2 else {"oneOf": [{"type": "string"}, {"type": "number"}]}
    )
    return {
        _NAMED[schema.TIME]: {"type": "string", "format": "date-time"},
        _NAMED[schema.MICRO_TIME]: {"type": "string", "format": "date-time"},
        _NAMED[schema.FIELDS]: {"type": "object"},
        _NAMED[schema.QUANTITY]: quantity,
        _NAMED[schema.INT_OR_STRING]: {"format": "int-or-string", **either},
        PATCH: {"type": "object"},
    }


def _definition(model: str, version: str, style: str) -> JsonDict:
    own = schema.model(model)
    said = schema.descriptions(model)
    found: JsonDict = {
        "type": "object",
        "properties": {
            name: _property(own, name, said.get(name, ""), version, style) for name in own.fields
        },
    }
    if own.required:
        found["required"] = list(own.required)
    if own.short in ATOMIC_TYPES:
        found["x-kubernetes-map-type"] = ATOMIC
    return found


def _property(own: schema.Model, name: str, said: str, version: str, style: str) -> JsonDict:
    field = own.fields[name]
    inner: JsonDict
    if field.is_model or field.of in _NAMED:
        target = _NAMED.get(field.of) or definition_name(field.of, version)
        inner = {"$ref": style + target}
    else:
        inner = dict(_PLAIN[field.of])
    rules = merge_keys(own.short, name)
    if field.container == schema.LIST:
        inner = {"type": "array", "items": inner}
        if not rules.list_type and not own.short.endswith("List"):
            rules = MergeKeys(rules.strategy, rules.key, ATOMIC)
    elif field.container == schema.MAP:
        inner = {"type": "object", "additionalProperties": inner}
    elif "$ref" in inner and style == V3:
        # A reference has nothing beside it in this version.
        inner = {"allOf": [inner]}
    described: dict[str, Any] = {"description": said} if said else {}
    return described | inner | rules.extensions()
