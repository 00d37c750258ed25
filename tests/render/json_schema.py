"""As much of JSON Schema (draft 2020-12) as our schemas use; other keywords are an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
KEYWORDS = {
    "$ref", "type", "const", "enum", "minimum", "pattern", "required", "properties",
    "additionalProperties", "items", "allOf", "if", "then", "else",
}  # fmt: skip


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What is wrong with a value, place by place."""
    unknown = schema.keys() - ANNOTATIONS - KEYWORDS
    assert not unknown, f"the checker does not know {unknown}"
    found = list(_simple(value, schema, at))
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        found += problems(value, root["$defs"][name], root, at)
    for part in schema.get("allOf", ()):
        found += problems(value, part, root, at)
    if "if" in schema:
        branch = "else" if problems(value, schema["if"], root, at) else "then"
        found += problems(value, schema.get(branch, {}), root, at)
    if isinstance(value, dict):
        for key, each in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            found += problems(each, inner, root, f"{at}.{key}")
    if isinstance(value, list):
        for index, each in enumerate(value):
            found += problems(each, schema.get("items", {}), root, f"{at}[{index}]")
    return found


def _simple(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[name](value) for name in types):
        yield f"{at}: {value!r} is not of type {' or '.join(types)}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not one of {schema['enum']!r}"
    if "minimum" in schema and TYPES["number"](value) and value < schema["minimum"]:
        yield f"{at}: {value!r} is less than {schema['minimum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        missing = [key for key in schema.get("required", ()) if key not in value]
        yield from (f"{at}: {key} is missing" for key in missing)
