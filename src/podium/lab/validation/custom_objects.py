"""Validation of custom objects by the schema of their CustomResourceDefinition.

The messages are those of the API server. Rules in CEL are in `custom_rules`.

Upstream: apiextensions-apiserver/pkg/apiserver/validation, kube-openapi/pkg/validation/validate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from podium.cel.regular_expressions import PatternError, compile_pattern
from podium.lab.api.field_errors import (
    FieldError,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from podium.lab.schema.structural import INT_OR_STRING
from podium.objects.kinds.meta import JsonObject

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
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
        yield not_supported(path or "<nil>", value, supported)
    check = _CHECKS.get(type(value))
    if check is not None:
        yield from check(schema, value, path)


def _wrong_type(path: str, value: Any, wanted: str) -> FieldError:
    name = _type_name(value)
    text = f"{_where(path)} must be of type {wanted}: {_shown(name)}"
    return FieldError("FieldValueTypeInvalid", path or "<nil>", name, text)


def _where(path: str) -> str:
    return f"{path} in body" if path else "<nil> in body"


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
    return invalid_value(path or "<nil>", value, f"{_where(path)} {what}")


def _matches(pattern: str, value: str) -> bool:
    """Whether a pattern matches anywhere; a definition has no pattern that is none."""
    try:
        return compile_pattern(pattern).matches(value)
    except PatternError:
        return True


def _text_errors(schema: JsonObject, value: str, path: str) -> Iterator[FieldError]:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        yield too_long(path, value, most)
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
        "FieldValueTooMany", path or "<nil>", actual, f"must have at most {most} {what}"
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
