"""Structural schemas of custom resources: types, pruning, default values, validation.

A structural schema says of every field which type it has. Fields that it does not have are removed,
unless `x-kubernetes-preserve-unknown-fields` keeps them. `metadata`, `apiVersion` and `kind` of an
object, and of an embedded one, are never removed. A schema contains itself, so that it is no model
of `api_types`. The messages of the validation are those of the API server. Rules in CEL are not
evaluated.

Upstream: apiextensions-apiserver/pkg/apiserver/schema (pruning, defaulting, listtype),
apiextensions-apiserver/pkg/apiserver/validation, kube-openapi/pkg/validation/validate.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from podium.cel.regular_expressions import PatternError, compile_pattern
from podium.lab.api.status import (
    FieldError,
    bad_request,
    invalid_value,
    not_supported,
    required,
    too_long,
)
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
#: The largest number of each type of Go.
_LARGEST: Final = {"int64": 2**63 - 1, "float64": sys.float_info.max}
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
        if not _is_any_of(value, kinds) or not _is_in_range(value, named):
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


def _is_in_range(value: Any, named: str) -> bool:
    """Whether a number fits into a type of Go."""
    most = _LARGEST.get(named)
    return most is None or abs(value) <= most


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


def inner_schemas(schema: JsonObject, path: str) -> Iterator[tuple[str, Any]]:
    """The schemas of the fields, the items and the other values, each with its path."""
    for name, each in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", each
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield f"{path}.{name}", schema[name]


def count_rules(schema: Any) -> int:
    """The number of rules in CEL in a schema, at any depth."""
    if not isinstance(schema, dict):
        return 0
    inner = (count_rules(each) for _, each in inner_schemas(schema, ""))
    return len(schema.get(_RULES) or ()) + sum(inner)


def _unmarshal(value: Any, path: str, wanted: str) -> str:
    found = "null" if value is None else _JSON_TYPES.get(type(value), "number")
    if found == "number" and wanted in _LARGEST:
        found = f"number {value}"
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
            if inner.get("default") is not None and _takes_default(inner, value, name):
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


def default_errors(
    schema: JsonObject, path: str, *, is_object: bool = True
) -> Iterator[FieldError]:
    """The default values in a schema, at any depth, that do not fit the schema themselves.

    Upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
    """
    default = schema.get("default")
    if default is not None and not schema.get(INT_OR_STRING):
        yield from _errors_of_default(schema, default, f"{path}.default")
    if isinstance(schema.get("items"), dict):
        yield from default_errors(schema["items"], f"{path}.items", is_object=False)
    is_object = is_object or bool(schema.get(EMBEDDED))
    for name, each in (schema.get("properties") or {}).items():
        if not (is_object and name in _TYPE_FIELDS):
            yield from default_errors(each, f"{path}.properties[{name}]", is_object=False)


def _errors_of_default(schema: JsonObject, default: Any, path: str) -> Iterator[FieldError]:
    if next(_prune(schema, copy.deepcopy(default), ""), None) is not None:
        yield invalid_value(path, default, "must not have unknown fields")
    for each in _errors(schema, default, ""):
        field = path if each.field == _ROOT else f"{path}.{each.field}"
        yield replace(each, field=field)


#: How the path of a whole object is written.
_ROOT: Final = "<nil>"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


def validate_custom_object(schema: JsonObject, item: JsonObject) -> list[FieldError]:
    """The errors in a custom object; its metadata is not part of the schema."""
    inner = {**schema, "properties": _without_type_fields(schema.get("properties") or {})}
    inner["required"] = [each for each in schema.get("required") or () if each not in _TYPE_FIELDS]
    return list(_errors(inner, item, ""))


def _without_type_fields(properties: JsonObject) -> JsonObject:
    return {name: each for name, each in properties.items() if name not in _TYPE_FIELDS}


def _errors(schema: JsonObject, value: Any, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if schema.get(INT_OR_STRING):
        if not isinstance(value, str) and not _is_integer(value):
            yield _wrong_type(path, value, "integer,string")
            return
    elif wanted and not _has_type(value, wanted):
        yield _wrong_type(path, value, wanted)
        return
    yield from _combination_errors(schema, value, path)
    if "enum" in schema and value not in schema["enum"]:
        supported = [each if isinstance(each, str) else _shown(each) for each in schema["enum"]]
        yield not_supported(path or _ROOT, value, supported)
    check = _CHECKS.get(type(value))
    if check is not None:
        yield from check(schema, value, path)


def _wrong_type(path: str, value: Any, wanted: str) -> FieldError:
    name = _type_name(value)
    text = f"{_where(path)} must be of type {wanted}: {_shown(name)}"
    return FieldError("FieldValueTypeInvalid", path or _ROOT, name, text)


def _where(path: str) -> str:
    return f"{path} in body"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _has_type(value: Any, wanted: str) -> bool:
    if wanted == "integer":
        return _is_integer(value)
    if wanted == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds: dict[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict}
    return isinstance(value, kinds[wanted]) if wanted in kinds else True


def _invalid(path: str, value: Any, what: str) -> FieldError:
    return invalid_value(path or _ROOT, value, f"{_where(path)} {what}")


def _matches(pattern: str, value: str) -> bool:
    """Whether a pattern matches anywhere; a definition has no pattern that is none."""
    try:
        return compile_pattern(pattern).matches(value)
    except PatternError:
        return True


def _text_errors(schema: JsonObject, value: str, path: str) -> Iterator[FieldError]:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        yield too_long(path or _ROOT, value, most)
    if least is not None and len(value) < least:
        yield _invalid(path, value, f"should be at least {least} chars long")
    if schema.get("pattern") and not _matches(schema["pattern"], value):
        yield _invalid(path, value, f"should match '{schema['pattern']}'")
    if schema.get("format") in {"date-time", "datetime"} and not _TIME.fullmatch(value):
        yield _invalid(path, value, f"must be of type {schema['format']}: {_shown(value)}")


def _number_errors(schema: JsonObject, value: float, path: str) -> Iterator[FieldError]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield _invalid(path, value, f"should be greater than {_shown(least)}")
        elif value < least:
            yield _invalid(path, value, f"should be greater than or equal to {_shown(least)}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield _invalid(path, value, f"should be less than {_shown(most)}")
        elif value > most:
            yield _invalid(path, value, f"should be less than or equal to {_shown(most)}")
    factor = schema.get("multipleOf")
    if factor and value % factor:
        yield _invalid(path, value, f"should be a multiple of {_shown(factor)}")
    end = _RANGES.get(schema.get("format") or "")
    if end is not None and not -end <= value < end:
        yield _invalid(path, value, f"must be of type integer: {_shown(schema['format'])}")


def _list_errors(schema: JsonObject, value: list[Any], path: str) -> Iterator[FieldError]:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        yield _too_many(path, len(value), most, "items")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"should have at least {least} items")
    kind = schema.get("x-kubernetes-list-type")
    if schema.get("uniqueItems") or kind == "set":
        seen = set()
        for index, each in enumerate(value):
            text = _shown(each)
            if text in seen:
                yield FieldError("FieldValueDuplicate", f"{path}[{index}]", each, "")
            seen.add(text)
    elif kind == "map":
        yield from _duplicate_keys(schema.get("x-kubernetes-list-map-keys") or (), value, path)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, each in enumerate(value):
            yield from _errors(items, each, f"{path}[{index}]")


def _duplicate_keys(keys: Any, value: list[Any], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, each in enumerate(value):
        if not isinstance(each, dict):
            continue
        found = {key: each[key] for key in keys if key in each}
        text = _shown(found)
        if text in seen:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]", found, "")
        seen.add(text)


def _too_many(path: str, actual: int, most: int, what: str) -> FieldError:
    return FieldError(
        "FieldValueTooMany", path or _ROOT, actual, f"must have at most {most} {what}"
    )


def _object_errors(schema: JsonObject, value: JsonObject, path: str) -> Iterator[FieldError]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield _too_many(path, len(value), most, "items")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"should have at least {least} properties")
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, each in value.items():
        where = f"{path}.{name}" if path else name
        if name in properties:
            yield from _errors(properties[name], each, where)
        elif isinstance(others, dict):
            yield from _errors(others, each, where)


def _combination_errors(schema: JsonObject, value: Any, path: str) -> Iterator[FieldError]:
    for each in schema.get("allOf") or ():
        yield from _errors(each, value, path)
    if schema.get("anyOf") and not any(_fits(each, value) for each in schema["anyOf"]):
        yield _invalid(path, value, "must validate at least one schema (anyOf)")
    if schema.get("oneOf"):
        count = sum(_fits(each, value) for each in schema["oneOf"])
        if count != 1:
            found = "Found none valid" if not count else f"Found {count} valid alternatives"
            yield _invalid(path, value, f"must validate one and only one schema (oneOf). {found}")
    if schema.get("not") and _fits(schema["not"], value):
        yield _invalid(path, value, "must not validate the schema (not)")


#: What is checked of a value, by its type.
_CHECKS: Final[dict[type, Callable[[JsonObject, Any, str], Iterator[FieldError]]]] = {
    str: _text_errors,
    int: _number_errors,
    float: _number_errors,
    list: _list_errors,
    dict: _object_errors,
}


def _fits(schema: JsonObject, value: Any) -> bool:
    return next(_errors(schema, value, ""), None) is None
