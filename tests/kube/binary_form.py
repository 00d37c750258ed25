"""Objects and lists in the binary form, written as API servers write them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from podium.lab.schema import api_types
from podium.objects.protobuf.field_numbers import FieldNumber, field_numbers
from podium.objects.protobuf.wire import MAGIC

_VARINTS = {api_types.INTEGER, api_types.LONG, api_types.BOOLEAN}
_MESSAGES = {api_types.TIME, api_types.QUANTITY}


def binary_list(
    kind: str, objects: Iterable[dict[str, Any]], version: str = "7", token: str = ""
) -> bytes:
    """A list of objects of a kind of the core group."""
    about = field(1, b"") + field(2, version.encode()) + field(3, token.encode())
    items = b"".join(field(2, message(f"V1{kind}", each)) for each in objects)
    return envelope(f"{kind}List", field(1, about) + items)


def binary_status(text: str, reason: str, code: int, retry_after: int = 0) -> bytes:
    """The answer to a request that is refused."""
    details = field(5, field(1, b"") + field(2, b"") + number(5, retry_after))
    said = field(2, b"Failure") + field(3, text.encode()) + field(4, reason.encode())
    return envelope("Status", field(1, b"") + said + details + number(6, code))


def envelope(kind: str, raw: bytes) -> bytes:
    """A message with the type of an object, and the object."""
    of_type = field(1, b"v1") + field(2, kind.encode())
    return MAGIC + field(1, of_type) + field(2, raw) + field(3, b"") + field(4, b"")


def message(model: str, obj: dict[str, Any], table: str = "") -> bytes:
    """An object of a model; strings and numbers that are no pointers are written if empty too."""
    types = api_types.model(model).fields
    parts = []
    for number_, known in sorted(field_numbers()[table or model].items()):
        if known.part:
            parts.append(field(number_, message(model, obj, known.part)))
        elif known.name in types:
            parts.append(_written(number_, types[known.name], known, obj.get(known.name)))
    return b"".join(parts)


def _written(at: int, of: api_types.FieldType, known: FieldNumber, value: Any) -> bytes:
    if of.container == api_types.LIST:
        return b"".join(_single(at, of.of, each) for each in value or ())
    if of.container == api_types.MAP:
        entries = sorted((value or {}).items())
        return b"".join(
            field(at, field(1, key.encode()) + _single(2, of.of, each)) for key, each in entries
        )
    if value is not None:
        return _single(at, of.of, value)
    if known.pointer or of.of in {api_types.ANY, api_types.FIELDS, api_types.INT_OR_STRING}:
        return b""
    if of.of in _VARINTS:
        return number(at, 0)
    return field(at, message(of.of, {}) if of.is_model else b"")


def _single(at: int, of: str, value: Any) -> bytes:
    if of in _VARINTS:
        return number(at, int(value))
    if of == api_types.TIME:
        seconds = int(datetime.fromisoformat(value).timestamp())
        return field(at, number(1, seconds) + number(2, 0))
    if of == api_types.QUANTITY:
        return field(at, field(1, value.encode()))
    if of in api_types.SCALARS:
        return field(at, value.encode())
    return field(at, message(of, value))


def number(at: int, value: int) -> bytes:
    """A field with a number."""
    return _varint(at << 3) + _varint(value & (1 << 64) - 1)


def field(at: int, value: bytes) -> bytes:
    """A field with bytes."""
    return _varint(at << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
