"""The OpenAPI documents of the API, each made when it is first requested.

Version 2 is one document, as JSON and as protocol buffer. Version 3 has a document for each group
and version, and an index of them. Schemas have the names that Kubernetes gives its types. Paths
hold what kubectl reads: the kind of the objects at a path, and whether the operations have the
parameters `dryRun` and `fieldValidation`.

Upstream, for custom resources: apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from podium import __version__
from podium.lab.api.encoding import PATCH_TYPES, STRATEGIC_MERGE_PATCH
from podium.lab.api.resources import TABLE, Resource
from podium.lab.api.status import unknown_path
from podium.lab.http.openapi_protobuf import encode_document
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

#: The names of the scalar types that have a named schema.
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


_PARAMETER_TYPES = {
    "continue": "string",
    "dryRun": "string",
    "fieldManager": "string",
    "fieldSelector": "string",
    "fieldValidation": "string",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "labelSelector": "string",
    "limit": "integer",
    "pretty": "string",
    "propagationPolicy": "string",
    "resourceVersion": "string",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_FOR_LISTS = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "timeoutSeconds",
    "watch",
)
_FOR_WRITES = ("dryRun", "fieldManager", "fieldValidation")
_FOR_DELETIONS = ("dryRun", "gracePeriodSeconds", "propagationPolicy")


class _Kind(NamedTuple):
    """The kind of the objects at a path, and whether it is a custom one."""

    group: str
    version: str
    name: str
    is_custom: bool = False

    def definition(self, suffix: str = "") -> str:
        """The name of the schema of the kind, or of its list if *suffix* is `List`."""
        if self.is_custom:
            return custom_definition_name(self.group, self.version, self.name) + suffix
        model = api_types.model_of_kind(self.name, f"{self.group}/{self.version}") + suffix
        return definition_name(model, self.version)


class _Operation(NamedTuple):
    """A verb, and the operation that stands for it in a document."""

    verb: str
    method: str
    action: str
    query: tuple[str, ...]
    has_body: bool


_COLLECTION = (
    _Operation("list", "get", "list", _FOR_LISTS, has_body=False),
    _Operation("create", "post", "post", _FOR_WRITES, has_body=True),
    _Operation(
        "deletecollection",
        "delete",
        "deletecollection",
        _FOR_DELETIONS + _FOR_LISTS,
        has_body=True,
    ),
)
_OBJECT = (
    _Operation("get", "get", "get", (), has_body=False),
    _Operation("update", "put", "put", _FOR_WRITES, has_body=True),
    _Operation("patch", "patch", "patch", (*_FOR_WRITES, "force"), has_body=True),
    _Operation("delete", "delete", "delete", _FOR_DELETIONS, has_body=True),
)
_SUBRESOURCE = (
    *_OBJECT[:3],
    _Operation("create", "post", "connect", _FOR_WRITES, has_body=True),
)


def paths(resources: Iterable[Resource], spec: SpecVersion) -> dict[str, JsonObject]:
    """The paths of *resources* with their operations."""
    found: dict[str, JsonObject] = {}
    for each in resources:
        kind = _Kind(each.group, each.version, each.kind, each.custom is not None)
        where = each.path("{namespace}")
        found[where] = _item(where, each.verbs, kind, _COLLECTION, spec)
        if each.namespaced and "list" in each.verbs:
            found[each.path()] = _item(each.path(), ("list",), kind, _COLLECTION, spec)
        if "get" not in each.verbs:
            continue
        where = each.path("{namespace}", "{name}")
        found[where] = _item(where, each.verbs, kind, _OBJECT, spec)
        for name, sub in each.subresources.items():
            group = each.group if sub.group is None else sub.group
            is_custom = each.custom is not None and sub.kind == each.kind
            sub_kind = _Kind(group, sub.version or each.version, sub.kind, is_custom)
            path = f"{where}/{name}"
            found[path] = _item(path, sub.verbs, sub_kind, _SUBRESOURCE, spec)
    return dict(sorted(found.items()))


def _item(
    path: str,
    verbs: Iterable[str],
    kind: _Kind,
    operations: Iterable[_Operation],
    spec: SpecVersion,
) -> JsonObject:
    item: JsonObject = {}
    for each in operations:
        if each.verb in verbs:
            item[each.method] = _operation(path, kind, each, spec)
    item["parameters"] = [
        _parameter(name, "path", "string", spec)
        for name in ("namespace", "name")
        if f"{{{name}}}" in path
    ]
    return item


def _operation(path: str, kind: _Kind, operation: _Operation, spec: SpecVersion) -> JsonObject:
    group, version, name, _ = kind
    action = operation.action
    target = spec.reference(kind.definition("List" if action == "list" else ""))
    body_schema = spec.reference(PATCH) if action == "patch" else target
    if action.startswith("delete"):
        body_schema = spec.reference(definition_name("V1DeleteOptions"))
    found: JsonObject = {
        "operationId": _operation_id(action, path),
        "parameters": [
            _parameter(each, "query", _PARAMETER_TYPES[each], spec) for each in operation.query
        ],
        "responses": {"200": _response(target, spec), "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "kind": name, "version": version},
    }
    types: tuple[str, ...] = ("application/json",)
    if action == "patch":
        types = PATCH_TYPES
        if kind.is_custom:
            types = tuple(each for each in PATCH_TYPES if each != STRATEGIC_MERGE_PATCH)
    if spec is SpecVersion.V2:
        found |= {"consumes": list(types), "produces": ["application/json"]}
        if operation.has_body:
            needed = {"required": True} if not action.startswith("delete") else {}
            body: JsonObject = {"name": "body", "in": "body", **needed, "schema": body_schema}
            found["parameters"].insert(0, body)
    elif operation.has_body:
        content = {each: {"schema": body_schema} for each in types}
        found["requestBody"] = {"content": content}
    return found


def _operation_id(action: str, path: str) -> str:
    words = [word.strip("{}").replace(".", "-") for word in path.split("/") if word]
    return action + "".join(word[:1].upper() + word[1:] for word in words)


def _response(target: dict[str, str], spec: SpecVersion) -> JsonObject:
    if spec is SpecVersion.V2:
        return {"description": "OK", "schema": target}
    return {"description": "OK", "content": {"application/json": {"schema": target}}}


def _parameter(name: str, where: str, kind: str, spec: SpecVersion) -> JsonObject:
    found: dict[str, Any] = {"name": name, "in": where}
    if where == "path":
        found["required"] = True
    plain = {"type": kind, "uniqueItems": True}
    return found | (plain if spec is SpecVersion.V2 else {"schema": plain})


#: The media type of the protocol buffer; the one in requests has an `@` and is invalid.
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#: The resources whose objects have a type.
_TYPED = tuple(each for each in TABLE if not each.computed)
_INFO = {"title": "Kubernetes", "version": f"podium-{__version__}"}


#: The documents with custom resources that were asked for last, by these resources.
_LAST_CUSTOM = 4


def _v2(custom: tuple[Resource, ...]) -> JsonObject:
    spec = SpecVersion.V2
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": paths((*_TYPED, *custom), spec),
        "definitions": {**definitions(_TYPED, spec), **custom_definitions(custom, spec)},
    }


@lru_cache(maxsize=_LAST_CUSTOM)
def v2_json(custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of version 2 as JSON."""
    return msgspec.json.encode(_v2(custom))


@lru_cache(maxsize=_LAST_CUSTOM)
def v2_protobuf(custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of version 2 as a protocol buffer."""
    return encode_document(_v2(custom))


@lru_cache(maxsize=_LAST_CUSTOM)
def v3_index(custom: tuple[Resource, ...] = ()) -> bytes:
    """The paths of the documents of version 3, with a hash that changes with the resources."""
    schemas = [each.custom.schema for each in custom if each.custom is not None]
    described = repr((__version__, TABLE, custom)).encode() + msgspec.json.encode(schemas)
    content_hash = hashlib.sha256(described).hexdigest()[:32].upper()
    names = sorted({each.prefix.removeprefix("/") for each in (*_TYPED, *custom)})
    found = {
        name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={content_hash}"} for name in names
    }
    return msgspec.json.encode({"paths": found})


@lru_cache(maxsize=64)
def v3_document(group_version: str, custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of one group and version: `v1` or `api/v1`, `apps/v1` or `apis/apps/v1`."""
    wanted = group_version.removeprefix("apis/").removeprefix("api/")
    resources = [each for each in (*_TYPED, *custom) if each.group_version == wanted]
    if not resources:
        raise unknown_path()
    spec = SpecVersion.V3
    own = [each for each in resources if each.custom is None]
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths(resources, spec),
        "components": {
            "schemas": {
                **definitions(own or TABLE[:1], spec),
                **custom_definitions(resources, spec),
            }
        },
    }
    return msgspec.json.encode(document)
