"""Structural schemas of custom resources: types of their fields, pruning, and default values.

A structural schema says of every field which type it has. Fields that it does not have are removed,
unless `x-kubernetes-preserve-unknown-fields` keeps them. `metadata`, `apiVersion` and `kind` of an
object, and of an embedded one, are never removed. A schema contains itself, so that it is no model
of `api_types`.

Upstream: apiextensions-apiserver/pkg/apiserver/schema (pruning, defaulting, listtype).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from podium.lab.api.status import bad_request
from podium.objects.kinds.meta import JsonObject

_STRINGS: Final = (
    "id", "$schema", "$ref", "description", "type", "format", "title", "pattern",
    "x-kubernetes-list-type", "x-kubernetes-map-type",
)  # fmt: skip
_BOOLEANS: Final = (
    "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable",
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip
_NUMBERS: Final = ["maximum", "minimum", "multipleOf"]
_INTEGERS: Final = (
    "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties",
)  # fmt: skip
_TEXT_LISTS: Final = ["required", "x-kubernetes-list-map-keys"]
_SCHEMA: Final = "v1.JSONSchemaProps"
_SCHEMA_LISTS: Final = ["allOf", "oneOf", "anyOf"]
_SCHEMA_MAPS: Final = ["properties", "patternProperties", "definitions"]
_RULES: Final = "x-kubernetes-validations"
_RULE_STRINGS: Final = ["rule", "message", "messageExpression", "fieldPath", "reason"]
#: The Python types of each field, and how Go names the type.
_FIELDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    **dict.fromkeys(_STRINGS, ((str,), "string")),
    **dict.fromkeys(_BOOLEANS, ((bool,), "bool")),
    **dict.fromkeys(_NUMBERS, ((int, float), "float64")),
    **dict.fromkeys(_INTEGERS, ((int,), "int64")),
    **dict.fromkeys(_TEXT_LISTS, ((list,), "[]string")),
    **dict.fromkeys(_SCHEMA_LISTS, ((list,), f"[]{_SCHEMA}")),
    **dict.fromkeys(_SCHEMA_MAPS, ((dict,), f"map[string]{_SCHEMA}")),
    "enum": ((list,), "[]v1.JSON"),
    "not": ((dict,), _SCHEMA),
    "items": ((dict, list), "v1.JSONSchemaPropsOrArray"),
    "additionalProperties": ((dict, bool), "v1.JSONSchemaPropsOrBool"),
    "additionalItems": ((dict, bool), "v1.JSONSchemaPropsOrBool"),
    "externalDocs": ((dict,), "v1.ExternalDocumentation"),
    _RULES: ((list,), "v1.ValidationRules"),
}
_JSON_TYPES: Final = {str: "string", list: "array", dict: "object", bool: "bool"}
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def refuse_wrong_schema_types(definition: JsonObject) -> None:
    """400 if a field of a schema of a definition has the wrong type."""
    for version in (definition.get("spec") or {}).get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        for problem in _problems(schema, "spec.versions.schema.openAPIV3Schema"):
            kind = "CustomResourceDefinition"
            raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')


def _problems(schema: Any, path: str) -> Iterator[str]:
    if schema is None:
        return
    if not isinstance(schema, dict):
        yield _unmarshal(schema, path, _SCHEMA)
        return
    fields: dict[str, Any] = schema
    for name, value in fields.items():
        kinds, named = _FIELDS.get(name, ((), ""))
        if value is None or not kinds:
            continue
        here = f"{path}.{name}"
        if not _is_any_of(value, kinds):
            yield _unmarshal(value, here, named)
        elif name in _TEXT_LISTS:
            yield from (_unmarshal(e, here, "string") for e in value if not isinstance(e, str))
        elif name == _RULES:
            yield from _rule_problems(value, here)
        else:
            yield from _inner_problems(name, value, here)


def _is_any_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a value is of one of these types; a boolean is no number."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _inner_problems(name: str, value: Any, path: str) -> Iterator[str]:
    """The problems of the schemas in a field."""
    inner: list[Any] = []
    if name in _SCHEMA_MAPS:
        inner = list(value.values())
    elif name in _SCHEMA_LISTS or (name == "items" and isinstance(value, list)):
        inner = value
    elif name in {"not", "items", "additionalProperties", "additionalItems"}:
        inner = [value] if isinstance(value, dict) else []
    for each in inner:
        yield from _problems(each, path)


def _rule_problems(rules: list[Any], path: str) -> Iterator[str]:
    for rule in rules:
        if not isinstance(rule, dict):
            yield _unmarshal(rule, path, "v1.ValidationRule")
            continue
        for name in _RULE_STRINGS:
            if rule.get(name) is not None and not isinstance(rule[name], str):
                yield _unmarshal(rule[name], f"{path}.{name}", "string")


def _unmarshal(value: Any, path: str, wanted: str) -> str:
    found = "null" if value is None else _JSON_TYPES.get(type(value), "number")
    where = f"Go struct field JSONSchemaProps.{path}"
    return f"json: cannot unmarshal {found} into {where} of type {wanted}"


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
