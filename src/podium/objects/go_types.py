"""Values as Go decodes and writes them: its types, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec


class GoScalar(msgspec.Struct, frozen=True):
    """A plain value: its kind and the name of its Go type."""

    kind: str
    go: str
    zero: Any
    bits: int = 64


class Slice(msgspec.Struct, frozen=True):
    """A list; `make` is what becomes of it."""

    item: GoType
    make: Callable[[list[Any]], Any] = tuple

    @property
    def go(self) -> str:
        """As Go writes the type."""
        return f"[]{self.item.go}"


class Special(msgspec.Struct, frozen=True):
    """A type that reads itself: `duration`, `pointer` (to one), `raw`, `bytes` or `map`."""

    kind: str
    go: str


class Field(msgspec.Struct, frozen=True):
    """A member of a struct."""

    #: Empty: it is read and not kept.
    attribute: str
    type: GoType
    #: The embedded struct it really belongs to; it shows in messages.
    inside: str = ""


class Struct(msgspec.Struct, frozen=True):
    """An object: `make` is called with the members that are there."""

    go: str
    make: Callable[..., Any]
    fields: Mapping[str, Field]

    @property
    def name(self) -> str:
        """The name without its package."""
        return self.go.rpartition(".")[2]


GoType = GoScalar | Slice | Special | Struct

STRING: Final = GoScalar("string", "string", "")
BOOL: Final = GoScalar("bool", "bool", zero=False)
INT32: Final = GoScalar("int", "int32", 0, 32)
INT64: Final = GoScalar("int", "int64", 0)
FLOAT32: Final = GoScalar("float", "float32", 0.0, 32)
DURATION: Final = Special("duration", "v1.Duration")
DURATION_POINTER: Final = Special("pointer", "v1.Duration")
RAW: Final = Special("raw", "runtime.RawExtension")
BYTES: Final = Special("bytes", "[]uint8")
STRING_MAP: Final = Special("map", "map[string]string")
STRINGS: Final = Slice(STRING)


def named(go: str) -> GoScalar:
    """Text of a type of its own."""
    return GoScalar("string", go, "")


def camel(attribute: str) -> str:
    """The name of an attribute in JSON."""
    first, *rest = attribute.split("_")
    return first + "".join(map(str.capitalize, rest))


def record(go: str, make: Callable[..., Any], **fields: GoType | tuple[str, GoType]) -> Struct:
    """A struct whose members are named after attributes; a tuple brings its own name in JSON."""
    found = {}
    for attribute, given in fields.items():
        name, kind = given if isinstance(given, tuple) else (camel(attribute), given)
        found[name] = Field(attribute, kind)
    return Struct(go, make, found)


_ESCAPED = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def go_json(value: Any) -> str:
    """The value without blanks and with Unicode letters as they are; <, > and & are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(_ESCAPED.get(character, character) for character in text)
