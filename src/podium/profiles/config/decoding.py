"""JSON values to typed values, field by field, as Go decodes JSON strictly.

An unknown field, or a key that is there twice, is a strict error and does not stop the decoding.
Of the values that do not fit their field the first is reported, with the name of its Go type, as
kube-scheduler reports it. A duration that cannot be parsed ends the decoding at once.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import Any, Final

import msgspec

from podium.objects.go_types import STRING, GoScalar, GoType, Slice, Special, Struct
from podium.objects.names import quoted
from podium.objects.times import parse as parse_duration
from podium.profiles.config.json_values import Fields, JsonValue, Number, json_type
from podium.profiles.similar_names import did_you_mean

_ABSENT: Final = object()
#: At most this many strict errors are reported.
_MAX_STRICT: Final = 100


class DecodingError(ValueError):
    """The value cannot be decoded; the text is that of kube-scheduler."""


class Decoded(msgspec.Struct):
    """A decoded value, its strict errors, and a hint about a misspelt field."""

    value: Any
    strict: list[str]
    hint: str = ""


def decode(tree: JsonValue, kind: Struct) -> Decoded:
    """Read an object; null is an empty one."""
    reader = _Reader()
    value = reader.read(tree, kind)
    if reader.saved:
        raise DecodingError(reader.saved)
    return Decoded(kind.make() if value is _ABSENT else value, reader.strict, reader.hint)


class _Reader(msgspec.Struct):
    """The position of the decoder: struct, members on the way to it, path."""

    struct: str = ""
    stack: list[str] = msgspec.field(default_factory=list)
    path: str = ""
    saved: str = ""
    strict: list[str] = msgspec.field(default_factory=list)
    hint: str = ""

    def read(self, tree: JsonValue, kind: GoType) -> Any:
        """The value of this type, or `_ABSENT` where there is none."""
        if isinstance(kind, Special):
            return self.special(tree, kind)
        if tree is None:
            return _ABSENT
        if isinstance(kind, GoScalar):
            return self.scalar(tree, kind)
        if isinstance(kind, Slice):
            return self.items(tree, kind)
        return self.members(tree, kind)

    def mismatch(self, what: str, go: str) -> str:
        """The error about a value that does not fit its field."""
        if not self.stack:
            return f"json: cannot unmarshal {what} into Go value of type {go}"
        place = f"{self.struct}.{'.'.join(self.stack)}"
        return f"json: cannot unmarshal {what} into Go struct field {place} of type {go}"

    def report_mismatch(self, what: str, go: str) -> Any:
        self.saved = self.saved or self.mismatch(what, go)
        return _ABSENT

    def add_strict_error(self, what: str, key: str) -> None:
        path = f"{self.path}.{key}" if self.path else key
        text = f"{what} {quoted(path)}"
        if text not in self.strict and len(self.strict) < _MAX_STRICT:
            self.strict.append(text)

    def members(self, tree: JsonValue, kind: Struct) -> Any:
        if not isinstance(tree, Fields):
            return self.report_mismatch(json_type(tree), kind.go)
        found: dict[str, Any] = {}
        seen = set()
        outside = self.struct, len(self.stack), self.path
        for key, each in tree:
            member = kind.fields.get(key)
            if member is None:
                self.add_strict_error("unknown field", key)
                self.hint = self.hint or did_you_mean(key, kind.fields)
                continue
            if key in seen:
                self.add_strict_error("duplicate field", key)
            seen.add(key)
            self.stack += [member.inside, key] if member.inside else [key]
            self.struct, self.path = kind.name, f"{self.path}.{key}" if self.path else key
            value = self.read(each, member.type)
            self.struct, depth, self.path = outside
            del self.stack[depth:]
            if member.attribute and value is not _ABSENT:
                found[member.attribute] = value
        return kind.make(**found)

    def items(self, tree: JsonValue, kind: Slice) -> Any:
        if not isinstance(tree, list):
            return self.report_mismatch(json_type(tree), kind.go)
        found, path = [], self.path
        for index, each in enumerate(tree):
            self.path = f"{path}[{index}]"
            value = self.read(each, kind.item)
            found.append(_zero(kind.item) if value is _ABSENT else value)
        self.path = path
        return kind.make(found)

    def scalar(self, tree: JsonValue, kind: GoScalar) -> Any:
        what = json_type(tree)
        if what == "number" and kind.kind in ("int", "float"):
            number = _whole(tree, kind.bits) if kind.kind == "int" else _real(tree)
            return self.report_mismatch(f"number {tree}", kind.go) if number is None else number
        return tree if what == kind.kind else self.report_mismatch(what, kind.go)

    def special(self, tree: JsonValue, kind: Special) -> Any:
        if kind.kind == "raw":
            return _ABSENT if tree is None else tree
        if kind.kind in ("duration", "pointer"):
            return self.duration(tree, kind)
        if tree is None:
            return _ABSENT
        if kind.kind == "map":
            return self.string_map(tree, kind)
        return self.bytes(tree, kind)

    def duration(self, tree: JsonValue, kind: Special) -> Any:
        if tree is None and kind.kind == "pointer":
            return _ABSENT
        if tree is not None and json_type(tree) != "string":
            raise DecodingError(self.mismatch(json_type(tree), "string"))
        try:
            return parse_duration(tree or "")
        except ValueError as error:
            raise DecodingError(str(error)) from None

    def string_map(self, tree: JsonValue, kind: Special) -> Any:
        if not isinstance(tree, Fields):
            return self.report_mismatch(json_type(tree), kind.go)
        found, path = {}, self.path
        for key, each in tree:
            if key in found:
                self.add_strict_error("duplicate field", key)
            self.path = f"{path}.{key}" if path else key
            value = self.read(each, STRING)
            self.path = path
            found[key] = "" if value is _ABSENT else value
        return found

    def bytes(self, tree: JsonValue, kind: Special) -> Any:
        if json_type(tree) != "string":
            return self.report_mismatch(json_type(tree), kind.go)
        text = tree.replace("\r", "").replace("\n", "")
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self.saved = self.saved or f"illegal base64 data at input byte {_illegal(text)}"
            return _ABSENT


def _zero(kind: GoType) -> Any:
    """The value that a list holds in place of null."""
    if isinstance(kind, GoScalar):
        return kind.zero
    return kind.make() if isinstance(kind, Struct) else None


def _whole(text: Number, bits: int) -> int | None:
    limit = 1 << (bits - 1)
    if not text.lstrip("-").isdecimal() or len(text) > 20:
        return None
    number = int(text)
    return number if -limit <= number < limit else None


def _real(text: Number) -> float | None:
    """The nearest float of 32 bits; None if the number is too large."""
    number = float(text)
    try:
        packed: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return None
    return None if math.isinf(packed) else packed


def _illegal(text: str) -> int:
    """The offset of the first byte that is not base64."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    end = next((i for i, letter in enumerate(text) if letter not in letters), len(text))
    return end if end < len(text) and text[end] != "=" else end - end % 4
