"""Schemas of the OpenAPI documents, under the names that Kubernetes gives its types.

Upstream, for custom resources: apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from podium.lab.api.resources import Resource
from podium.lab.schema import api_types
from podium.lab.schema.merge_keys import ATOMIC, ATOMIC_TYPES, MergeKeys, merge_keys
from podium.objects.kinds.meta import JsonObject

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_TYPES = """
    Condition DeleteOptions LabelSelector LabelSelectorRequirement ListMeta ManagedFieldsEntry
    ObjectMeta OwnerReference Preconditions ShardInfo Status StatusCause StatusDetails
"""
#: The types of each group; all others are of the core group.
_GROUPS = (
    (_META, "|".join(_META_TYPES.split())),
    ("apps", r"(DaemonSet|Deployment|ReplicaSet|StatefulSet|RollingUpdate|ControllerRevision)\w*"),
    ("batch", r"(Job|CronJob|UncountedTerminatedPods|PodFailurePolicy|SuccessPolicy)\w*"),
    ("policy", r"PodDisruptionBudget\w*|Eviction"),
    ("apiextensions", r"CustomResource\w*"),
    ("apiregistration", r"APIService\w*"),
    (
        "admissionregistration",
        r"\w*Webhook(Configuration)?(List)?|RuleWithOperations|MatchCondition",
    ),
    ("autoscaling", r"Scale|ScaleSpec|ScaleStatus|CrossVersionObjectReference"),
    ("autoscaling", r"(HorizontalPodAutoscaler|HPAScaling|Metric)\w*|\w+Metric(Source|Status)"),
    ("storage", r"(StorageClass|CSIDriver|CSINode|CSIStorageCapacity|VolumeAttachment)\w*"),
    ("storage", r"VolumeError|VolumeNodeResources|TokenRequest"),
    ("coordination", r"Lease\w*"),
    ("scheduling", r"PriorityClass\w*|PodGroup\w*|DisruptionMode|GangSchedulingPolicy"),
    ("scheduling", r"TopologyConstraint|WorkloadReference"),
    ("discovery", r"EndpointSlice\w*|Endpoint|EndpointConditions|EndpointHints|ForZone|ForNode"),
    ("authentication", r"SelfSubjectReview\w*|UserInfo|TokenReview\w*|BoundObjectReference"),
    ("authentication", r"TokenRequest(Spec|Status)"),
    ("node", r"RuntimeClass\w*|Overhead|Scheduling"),
    ("authorization", r"(SelfSubjectAccess|SelfSubjectRules)Review\w*|FieldSelector\w+"),
    (
        "authorization",
        r"(Local)?(SubjectAccess|SubjectRules)Review\w*|(Non)?Resource(Attributes|Rule)",
    ),
    ("authorization", r"LabelSelectorAttributes"),
    (
        "resource",
        r"ResourceClaim(Template)?(Spec|Status|List|ConsumerReference)|ResourceClaimTemplate",
    ),
    ("resource", r"ResourceSlice\w*|ResourcePool|(Exact)?Device\w*|(CEL|Opaque|Network)Device\w*"),
    ("resource", r"Allocat(edDeviceStatus|ionResult)|Capacity\w*|Counter(Set)?"),
    ("resource", r"NodeAllocatableResourceMapping"),
)
_GROUP_OF = tuple((group, re.compile(pattern)) for group, pattern in _GROUPS)
_QUALIFIED = {
    "AuthenticationV1": "authentication",
    "CoreV1": "core",
    "EventsV1": "events",
    "DiscoveryV1": "discovery",
    "ResourceV1": "resource",
}

#: The names of the scalar types that have a schema of their own.
_NAMED_SCALARS = {
    api_types.TIME: f"{_META}.Time",
    api_types.MICRO_TIME: f"{_META}.MicroTime",
    api_types.FIELDS: f"{_META}.FieldsV1",
    api_types.QUANTITY: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    api_types.INT_OR_STRING: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
_INLINE_SCALARS: dict[str, JsonObject] = {
    api_types.STRING: {"type": "string"},
    api_types.INTEGER: {"type": "integer", "format": "int32"},
    api_types.LONG: {"type": "integer", "format": "int64"},
    api_types.BOOLEAN: {"type": "boolean"},
    api_types.ANY: {"type": "object"},
    api_types.BYTES: {"type": "string", "format": "byte"},
}
PATCH = f"{_META}.Patch"
#: What version 2 of the specification knows of a structural schema.
_V2_KEYS: Final = ("description", "type", "format", "required", "x-kubernetes-list-type",
                   "x-kubernetes-list-map-keys", "x-kubernetes-map-type")  # fmt: skip
_TYPE_FIELDS: Final[JsonObject] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


class SpecVersion(Enum):
    """A version of the specification; its value is the prefix of references to schemas."""

    V2 = "#/definitions/"
    V3 = "#/components/schemas/"

    def reference(self, name: str) -> dict[str, str]:
        """A reference to the schema of this name."""
        return {"$ref": self.value + name}


def definition_name(model: str, version: str = "v1") -> str:
    """The name of a model's schema: `io.k8s.api.core.v1.Pod`."""
    short = api_types.short_name(model)
    for prefix, group in _QUALIFIED.items():
        if model.startswith(prefix):
            return f"io.k8s.api.{group}.v1.{short}"
    group = next((group for group, pattern in _GROUP_OF if pattern.fullmatch(short)), "core")
    if group == _META:
        return f"{_META}.{short}"
    if model.startswith("V2"):
        return f"io.k8s.api.{group}.v2.{short}"
    beta = version if group == "policy" and short.startswith("PodDisruptionBudget") else "v1"
    return f"io.k8s.api.{group}.{beta}.{short}"


def _root_models(resources: Iterable[Resource]) -> list[tuple[str, str, JsonObject]]:
    """The models of the objects of *resources*: model, version, and group, version and kind."""
    found: dict[tuple[str, str], JsonObject] = {}

    def add(model: str, group: str, version: str, kind: str) -> None:
        if api_types.has_model(model):
            found[model, version] = {"group": group, "kind": kind, "version": version}

    for each in resources:
        model = api_types.model_of_kind(each.kind, each.group_version)
        add(model, each.group, each.version, each.kind)
        if "list" in each.verbs:
            add(_list_model(model), each.group, each.version, each.list_kind)
        for sub in each.subresources.values():
            group = each.group if sub.group is None else sub.group
            version = sub.version or each.version
            add(api_types.model_of_kind(sub.kind), group, version, sub.kind)
    add("V1DeleteOptions", "", "v1", "DeleteOptions")
    add("V1Status", "", "v1", "Status")
    return [(model, version, what) for (model, version), what in found.items()]


def _list_model(model: str) -> str:
    """The model of lists of a model; that of `ResourceV1ResourceClaim` has no group in its name."""
    own = f"{model}List"
    return own if api_types.has_model(own) else f"V1{api_types.short_name(own)}"


def definitions(resources: Iterable[Resource], spec: SpecVersion) -> dict[str, JsonObject]:
    """The schemas of *resources* and of all types that they refer to."""
    found = {name: dict(each) for name, each in _scalar_definitions(spec).items()}
    for model, version, what in _root_models(resources):
        for each in api_types.reachable(model):
            name = definition_name(each, version)
            if name not in found:
                found[name] = _definition(each, version, spec)
        root = found[definition_name(model, version)]
        kinds = root.setdefault("x-kubernetes-group-version-kind", [])
        if what not in kinds:
            kinds.append(what)
    return dict(sorted(found.items()))


def _scalar_definitions(spec: SpecVersion) -> dict[str, JsonObject]:
    int_or_string: JsonObject = {"type": "string"}
    quantity: JsonObject = {"type": "string"}
    if spec is SpecVersion.V3:
        int_or_string = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
        quantity = {"oneOf": [{"type": "string"}, {"type": "number"}]}
    return {
        _NAMED_SCALARS[api_types.TIME]: {"type": "string", "format": "date-time"},
        _NAMED_SCALARS[api_types.MICRO_TIME]: {"type": "string", "format": "date-time"},
        _NAMED_SCALARS[api_types.FIELDS]: {"type": "object"},
        _NAMED_SCALARS[api_types.QUANTITY]: quantity,
        _NAMED_SCALARS[api_types.INT_OR_STRING]: {"format": "int-or-string", **int_or_string},
        PATCH: {"type": "object"},
    }


def _definition(model: str, version: str, spec: SpecVersion) -> JsonObject:
    own = api_types.model(model)
    descriptions = api_types.descriptions(model)
    found: JsonObject = {
        "type": "object",
        "properties": {
            name: _property(own, name, descriptions.get(name, ""), version, spec)
            for name in own.fields
        },
    }
    if own.required:
        found["required"] = list(own.required)
    if own.short in ATOMIC_TYPES:
        found["x-kubernetes-map-type"] = ATOMIC
    return found


def _property(
    own: api_types.Model, name: str, description: str, version: str, spec: SpecVersion
) -> JsonObject:
    field = own.fields[name]
    inner: JsonObject
    if field.is_model or field.of in _NAMED_SCALARS:
        target = _NAMED_SCALARS.get(field.of) or definition_name(field.of, version)
        inner = dict(spec.reference(target))
    else:
        inner = dict(_INLINE_SCALARS[field.of])
    rules = merge_keys(own.short, name)
    if field.container == api_types.LIST:
        inner = {"type": "array", "items": inner}
        if not rules.list_type and not own.short.endswith("List"):
            rules = MergeKeys(rules.strategy, rules.key, ATOMIC)
    elif field.container == api_types.MAP:
        inner = {"type": "object", "additionalProperties": inner}
    elif "$ref" in inner and spec is SpecVersion.V3:
        # Version 3 allows no other keys beside a reference.
        inner = {"allOf": [inner]}
    described: dict[str, Any] = {"description": description} if description else {}
    return described | inner | rules.extensions()


def custom_definition_name(group: str, version: str, kind: str) -> str:
    """The name of the schema of a custom kind: `com.example.v1.Widget`."""
    return ".".join([*reversed(group.split(".")), version, kind])


def custom_definitions(resources: Iterable[Resource], spec: SpecVersion) -> dict[str, JsonObject]:
    """The schemas of custom resources and of their lists."""
    found: dict[str, JsonObject] = {}
    for each in resources:
        if each.custom is None:
            continue
        what = {"group": each.group, "version": each.version}
        name = custom_definition_name(each.group, each.version, each.kind)
        schema = _converted(each.custom.schema, spec) or {"type": "object"}
        metadata: JsonObject = dict(spec.reference(definition_name("V1ObjectMeta")))
        if spec is SpecVersion.V3:
            metadata = {"allOf": [metadata]}
        keeps_all = each.custom.schema.get("x-kubernetes-preserve-unknown-fields")
        if spec is SpecVersion.V3 or not keeps_all:
            schema["properties"] = {
                **(schema.get("properties") or {}),
                **_TYPE_FIELDS,
                "metadata": metadata,
            }
        else:  # with any property, kubectl would refuse all others
            schema = {"type": "object"}
        found[name] = schema | {"x-kubernetes-group-version-kind": [what | {"kind": each.kind}]}
        items = {"type": "array", "items": spec.reference(name)}
        found[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                **_TYPE_FIELDS,
                "metadata": spec.reference(definition_name("V1ListMeta")),
                "items": items,
            },
            "x-kubernetes-group-version-kind": [what | {"kind": each.list_kind}],
        }
    return found


def _converted(schema: Any, spec: SpecVersion) -> JsonObject:
    """A structural schema in a version of the specification."""
    if spec is SpecVersion.V3:
        return dict(schema)
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable"):
        # Version 2 has no way to say so: clients must not check such values.
        return {"description": schema["description"]} if schema.get("description") else {}
    made = {key: schema[key] for key in _V2_KEYS if key in schema}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {
            name: _converted(each, spec) for name, each in schema["properties"].items()
        }
    if isinstance(schema.get("items"), dict):
        made["items"] = _converted(schema["items"], spec)
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _converted(schema["additionalProperties"], spec)
    return made
