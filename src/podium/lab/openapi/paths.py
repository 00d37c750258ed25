"""Paths of the OpenAPI documents: the operations of each resource.

They hold what kubectl reads: the kind of the objects at a path, and whether the operations have the
parameters `dryRun` and `fieldValidation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from podium.lab.api.encoding import PATCH_TYPES, STRATEGIC_MERGE_PATCH
from podium.lab.api.resources import Resource
from podium.lab.openapi.definitions import (
    PATCH,
    SpecVersion,
    custom_definition_name,
    definition_name,
)
from podium.lab.schema import api_types
from podium.objects.kinds.meta import JsonObject

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
