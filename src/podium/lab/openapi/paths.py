"""Paths of the OpenAPI documents: what can be asked of each resource, as far as clients look.

kubectl finds in them which kind a path is about, and whether `dryRun` and `fieldValidation` are
understood.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from podium.lab.api.media_types import PATCH_TYPES
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict
from podium.lab.openapi.definitions import PATCH, V2, definition_name
from podium.lab.schema import api_types as schema

_QUERY = {
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
_READING = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "timeoutSeconds",
    "watch",
)
_WRITING = ("dryRun", "fieldManager", "fieldValidation")
_DELETING = ("dryRun", "gracePeriodSeconds", "propagationPolicy")


class _Verb(NamedTuple):
    """A verb of discovery as an operation."""

    verb: str
    method: str
    action: str
    query: tuple[str, ...]
    has_body: bool


_COLLECTION = (
    _Verb("list", "get", "list", _READING, has_body=False),
    _Verb("create", "post", "post", _WRITING, has_body=True),
    _Verb("deletecollection", "delete", "deletecollection", _DELETING + _READING, has_body=True),
)
_OBJECT = (
    _Verb("get", "get", "get", (), has_body=False),
    _Verb("update", "put", "put", _WRITING, has_body=True),
    _Verb("patch", "patch", "patch", (*_WRITING, "force"), has_body=True),
    _Verb("delete", "delete", "delete", _DELETING, has_body=True),
)
_SUBRESOURCE = (*_OBJECT[:3], _Verb("create", "post", "connect", _WRITING, has_body=True))


def paths(resources: Iterable[Resource], style: str = V2) -> dict[str, JsonDict]:
    """Every path of these resources."""
    found: dict[str, JsonDict] = {}
    for each in resources:
        kind = (each.group, each.version, each.kind)
        where = each.path("{namespace}")
        found[where] = _item(where, each.verbs, kind, _COLLECTION, style)
        if each.namespaced and "list" in each.verbs:
            found[each.path()] = _item(each.path(), ("list",), kind, _COLLECTION, style)
        if "get" not in each.verbs:
            continue
        where = each.path("{namespace}", "{name}")
        found[where] = _item(where, each.verbs, kind, _OBJECT, style)
        for name, below in each.subresources.items():
            group = each.group if below.group is None else below.group
            kind_below = (group, below.version or each.version, below.kind)
            path = f"{where}/{name}"
            found[path] = _item(path, below.verbs, kind_below, _SUBRESOURCE, style)
    return dict(sorted(found.items()))


def _item(
    path: str,
    verbs: Iterable[str],
    kind: tuple[str, str, str],
    operations: Iterable[_Verb],
    style: str,
) -> JsonDict:
    item: JsonDict = {}
    for each in operations:
        if each.verb in verbs:
            item[each.method] = _operation(path, kind, each, style)
    item["parameters"] = [
        _parameter(name, "path", "string", style)
        for name in ("namespace", "name")
        if f"{{{name}}}" in path
    ]
    return item


def _operation(path: str, kind: tuple[str, str, str], verb: _Verb, style: str) -> JsonDict:
    group, version, name = kind
    action = verb.action
    listed = "List" if action == "list" else ""
    model = schema.model_of_kind(name, f"{group}/{version}") + listed
    target = {"$ref": style + definition_name(model, version)}
    sent = {"$ref": style + PATCH} if action == "patch" else target
    if action.startswith("delete"):
        sent = {"$ref": style + definition_name("V1DeleteOptions")}
    operation: JsonDict = {
        "operationId": _operation_id(action, path),
        "parameters": [_parameter(each, "query", _QUERY[each], style) for each in verb.query],
        "responses": {"200": _response(target, style), "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "kind": name, "version": version},
    }
    types: tuple[str, ...] = PATCH_TYPES if action == "patch" else ("application/json",)
    if style == V2:
        operation |= {"consumes": list(types), "produces": ["application/json"]}
        if verb.has_body:
            needed = {"required": True} if not action.startswith("delete") else {}
            body: JsonDict = {"name": "body", "in": "body", **needed, "schema": sent}
            operation["parameters"].insert(0, body)
    elif verb.has_body:
        content = {each: {"schema": sent} for each in types}
        operation["requestBody"] = {"content": content}
    return operation


def _operation_id(action: str, path: str) -> str:
    words = [word.strip("{}").replace(".", "-") for word in path.split("/") if word]
    return action + "".join(word[:1].upper() + word[1:] for word in words)


def _response(target: JsonDict, style: str) -> JsonDict:
    if style == V2:
        return {"description": "OK", "schema": target}
    return {"description": "OK", "content": {"application/json": {"schema": target}}}


def _parameter(name: str, where: str, kind: str, style: str) -> JsonDict:
    found: dict[str, Any] = {"name": name, "in": where}
    if where == "path":
        found["required"] = True
    plain = {"type": kind, "uniqueItems": True}
    return found | (plain if style == V2 else {"schema": plain})
