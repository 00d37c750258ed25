"""Bodies in Kubernetes' binary form, as newer kubectl and client-go send them, read as objects.

The types of the fields are those of `schema`; their numbers are in a table beside this module. A
zero is left out where the API cannot tell it from nothing, so that defaults apply as they do to
JSON. Answers are always JSON: every client that sends this form reads that one as well.

Upstream: apimachinery/pkg/runtime/serializer/protobuf.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from podium.lab.api.status import JsonDict, StatusError, bad_request
from podium.lab.schema import api_types as schema

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_TEXT, _VARINT, _FIXED64, _FIXED32 = 2, 0, 1, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST = 60
_NUMBERS = frozenset({schema.INTEGER, schema.LONG})
_TIMES = frozenset({schema.TIME, schema.MICRO_TIME})


class _Malformed(Exception):  # noqa: N818  caught here, never seen outside
    """The bytes are no message."""


class _Field(NamedTuple):
    """What a number stands for: a field, or a part whose fields lie among the others."""

    name: str
    pointer: bool
    part: str


@cache
def _tables() -> dict[str, dict[int, _Field]]:
    found: dict[str, dict[int, _Field]] = {}
    text = files("podium.lab.http").joinpath("protobuf_numbers.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        model, _, rest = line.partition(":")
        table = found[model] = {}
        for each in rest.split():
            name, _, number = each.partition("=")
            part = name if name.startswith("@") else ""
            table[int(number)] = _Field(name.rstrip("?"), name.endswith("?"), part)
    return found


def read(data: bytes) -> JsonDict:
    """The object in a body; 400 if it is none."""
    if not data.startswith(_MAGIC):
        raise _refused("provided data does not appear to be a protobuf message")
    try:
        kind = version = ""
        raw = b""
        for number, value in _fields(data[len(_MAGIC) :]):
            if number == 1:
                said = {key: _text(part) for key, part in _fields(_bytes(value))}
                version, kind = said.get(1, ""), said.get(2, "")
            elif number == 2:
                raw = _bytes(value)
        model = schema.model_of_kind(kind, version)
        if model not in _tables():
            raise _refused(f'no kind "{kind}" is registered for version "{version}"')
        item = _message(model, raw, 0)
    except (_Malformed, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise _refused(str(error) or "the message is damaged") from None
    return {"apiVersion": version, "kind": kind} | item


def _refused(why: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized: {why}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Malformed("a number is cut off")
        byte = data[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, by their numbers."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind in {_TEXT, _FIXED64, _FIXED32}:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
            if size is None:
                size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
            if at > len(data):
                raise _Malformed("a field is cut off")
        else:
            raise _Malformed(f"wire type {kind} is not known")
        yield tag >> 3, value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _Malformed("a number where bytes belong")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _message(model: str, data: bytes, depth: int, table: str = "") -> JsonDict:
    """A message as an object; *table* has the numbers if they are those of a part."""
    if depth > _DEEPEST:
        raise _Malformed("messages are nested too deeply")
    numbers = _tables()[table or model]
    types = schema.model(model).fields
    made: JsonDict = {}
    for number, value in _fields(data):
        field = numbers.get(number)
        if field is None:
            continue
        if field.part:
            made |= _message(model, _bytes(value), depth + 1, field.part)
            continue
        type = types.get(field.name)  # noqa: A001
        if type is None:
            continue
        if type.container == schema.LIST:
            made.setdefault(field.name, []).extend(_items(type, value, depth))
        elif type.container == schema.MAP:
            key, entry = _entry(type, _bytes(value), depth)
            made.setdefault(field.name, {})[key] = entry
        else:
            found = _value(type, value, depth)
            if field.pointer or found not in ("", 0, False, None, {}):
                made[field.name] = found
    return made


def _items(type: schema.FieldType, value: int | bytes, depth: int) -> list[Any]:  # noqa: A002
    if type.of in _NUMBERS and isinstance(value, bytes):
        found, at = [], 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(_signed(number))
        return found
    return [_value(type, value, depth)]


def _entry(type: schema.FieldType, data: bytes, depth: int) -> tuple[str, Any]:  # noqa: A002
    key, value = "", _value(type, b"" if type.of not in _NUMBERS else 0, depth)
    for number, part in _fields(data):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = _value(type, part, depth)
    return key, value


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _value(type: schema.FieldType, value: int | bytes, depth: int) -> Any:  # noqa: A002
    """One value of a field, whatever holds it."""
    if type.is_model:
        return _message(type.of, _bytes(value), depth + 1)
    if type.of in _NUMBERS or type.of == schema.BOOLEAN:
        if not isinstance(value, int):
            raise _Malformed("bytes where a number belongs")
        return bool(value) if type.of == schema.BOOLEAN else _signed(value)
    return _special(type.of, _bytes(value))


def _special(kind: str, data: bytes) -> Any:
    """A value that is a message or bytes of its own."""
    found: Any
    if kind == schema.BYTES:
        found = b64encode(data).decode()
    elif kind in _TIMES:
        found = _time(data, micro=kind == schema.MICRO_TIME)
    elif kind == schema.QUANTITY:
        found = next((_text(part) for number, part in _fields(data) if number == 1), "") or "0"
    elif kind == schema.INT_OR_STRING:
        parts = dict(_fields(data))
        is_text = parts.get(1) == 1
        found = _text(parts.get(3, b"")) if is_text else _signed(int(parts.get(2, 0)))
    elif kind in {schema.ANY, schema.FIELDS}:
        raw = next((_bytes(part) for number, part in _fields(data) if number == 1), b"")
        try:
            found = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError as error:
            raise _Malformed(str(error)) from None
    else:
        found = data.decode()
    return found


def _time(data: bytes, *, micro: bool) -> str | None:
    """Seconds and billionths since 1970; nothing at all is no time."""
    if not data:
        return None
    parts = dict(_fields(data))
    seconds, nanos = _signed(int(parts.get(1, 0))), int(parts.get(2, 0))
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    if moment.year == 1:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06d}Z" if micro else "Z")
