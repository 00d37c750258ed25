"""Structural schemas of custom resources: pruning of unknown fields, and default values.

A structural schema says of every field which type it has. Fields that it does not have are removed,
unless `x-kubernetes-preserve-unknown-fields` keeps them. `metadata`, `apiVersion` and `kind` of an
object, and of an embedded one, are never removed.

Upstream: apiextensions-apiserver/pkg/apiserver/schema (pruning, defaulting, listtype).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from podium.objects.kinds.meta import JsonObject

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(schema: JsonObject, item: JsonObject) -> list[str]:
    """Remove the fields of an object that its schema does not have; the paths of these fields."""
    return list(_prune(schema, item, "", is_object=True))


def _prune(schema: JsonObject, value: Any, path: str, *, is_object: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        items = schema.get("items") or {}
        for index, each in enumerate(value):
            yield from _prune(items, each, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _prune_object(schema, value, path, is_object=is_object)


def _prune_object(
    schema: JsonObject, value: JsonObject, path: str, *, is_object: bool
) -> Iterator[str]:
    is_object = is_object or bool(schema.get(EMBEDDED))
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for name in list(value):
        where = f"{path}.{name}" if path else name
        if is_object and name in _TYPE_FIELDS:
            continue
        if name in properties:
            yield from _prune(properties[name], value[name], where)
        elif isinstance(others, dict):
            yield from _prune(others, value[name], where)
        elif not schema.get(PRESERVE) and others is not True:
            del value[name]
            yield where


def set_defaults(schema: JsonObject, value: Any) -> None:
    """Set the default values of absent fields, in objects and items that are present."""
    if isinstance(value, list):
        items = schema.get("items")
        for each in value if isinstance(items, dict) else ():
            set_defaults(items or {}, each)
    elif isinstance(value, dict):
        known = schema.get("properties") or {}
        for name, inner in known.items():
            if "default" in inner and _takes_default(inner, value, name):
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                set_defaults(inner, value[name])
        others = schema.get("additionalProperties")
        for name, each in value.items() if isinstance(others, dict) else ():
            if name not in known:
                set_defaults(others or {}, each)


def _takes_default(schema: JsonObject, value: JsonObject, name: str) -> bool:
    """Whether a field is absent; `null` counts as absent where the schema does not allow it."""
    return name not in value or (value[name] is None and not schema.get("nullable"))
