"""A configuration file as JSON, before anything is known about its fields.

Objects keep the order of their keys and repeated keys, numbers keep their spelling: the messages of
kube-scheduler show both.
"""

from __future__ import annotations

import json
from typing import Any

from podium.objects.go_types import go_json


class Number(str):
    """A number as it is written in JSON."""

    __slots__ = ()


class Fields(tuple[tuple[str, Any], ...]):
    """The keys and values of an object, in the order they are read."""

    __slots__ = ()

    def get(self, key: str) -> Any:
        """The last value of a key, which counts for a lenient reader; None if there is none."""
        return next((value for name, value in reversed(self) if name == key), None)


_MAX_DIGITS = 40

#: None, a bool, a Number, text, a list or Fields.
JsonValue = Any

_JSON_TYPES = {bool: "bool", Number: "number", str: "string", list: "array", Fields: "object"}


def json_type(value: JsonValue) -> str:
    """The JSON type of a value that is not null."""
    return _JSON_TYPES[type(value)]


def plain(value: JsonValue) -> Any:
    """The value in ordinary Python types."""
    if isinstance(value, Fields):
        return {key: plain(each) for key, each in value}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return _number(value) if isinstance(value, Number) else value


def _number(text: Number) -> float | str:
    whole = text.lstrip("-").isdecimal() and len(text) <= _MAX_DIGITS
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return str(text)


def from_python(value: Any) -> JsonValue:
    """The JSON of a value that was decoded from JSON or YAML."""
    if isinstance(value, dict):
        return Fields((str(key), from_python(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return [from_python(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(json.dumps(value))
    return value


def compact(value: JsonValue) -> str:
    """The value as JSON on one line."""
    if isinstance(value, Fields):
        return f"{{{','.join(f'{go_json(key)}:{compact(each)}' for key, each in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(compact, value))}]"
    return value if isinstance(value, Number) else go_json(value)
