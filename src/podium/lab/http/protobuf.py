"""Bodies of `application/vnd.kubernetes.protobuf`, as newer kubectl and client-go send them.

The types of the fields are those of `schema.api_types`, their numbers those of
`objects.protobuf.field_numbers`. Zero values are left out of fields that are no pointers, as Go
leaves them out of JSON, so that defaults apply in the same way. Responses are always JSON, which
every client of this media type reads as well.

Upstream: apimachinery/pkg/runtime/serializer/protobuf.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podium.lab.api.status import StatusError, bad_request
from podium.lab.schema import api_types
from podium.objects.kinds.meta import JsonObject
from podium.objects.protobuf.field_numbers import field_numbers
from podium.objects.protobuf.wire import (
    MAGIC,
    MalformedError,
    as_bytes,
    fields,
    signed,
    unwrapped,
    varint,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_LEVELS = 60
_NUMBERS = frozenset({api_types.INTEGER, api_types.LONG})
_TIMES = frozenset({api_types.TIME, api_types.MICRO_TIME})


def read(data: bytes) -> JsonObject:
    """The object in a body; 400 if the body is malformed."""
    if not data.startswith(MAGIC):
        raise _unrecognized("provided data does not appear to be a protobuf message")
    try:
        version, kind, raw = unwrapped(data)
        model = api_types.model_of_kind(kind, version)
        if model not in field_numbers():
            raise _unrecognized(f'no kind "{kind}" is registered for version "{version}"')
        item = _message(model, raw, 0)
    except (MalformedError, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise _unrecognized(str(error) or "the message is damaged") from None
    return {"apiVersion": version, "kind": kind} | item


def _unrecognized(why: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized: {why}")


def _text(value: int | bytes) -> str:
    return as_bytes(value).decode()


def _message(model: str, data: bytes, depth: int, table: str = "") -> JsonObject:
    """A message of a model as an object; *table* has the numbers of a part of it."""
    if depth > _MOST_LEVELS:
        raise MalformedError("messages are nested too deeply")
    numbers = field_numbers()[table or model]
    types = api_types.model(model).fields
    made: JsonObject = {}
    for number, value in fields(data):
        field = numbers.get(number)
        if field is None:
            continue
        if field.part:
            made |= _message(model, as_bytes(value), depth + 1, field.part)
            continue
        field_type = types.get(field.name)
        if field_type is None:
            continue
        if field_type.container == api_types.LIST:
            made.setdefault(field.name, []).extend(_items(field_type, value, depth))
        elif field_type.container == api_types.MAP:
            key, entry = _entry(field_type, as_bytes(value), depth)
            made.setdefault(field.name, {})[key] = entry
        else:
            found = _value(field_type, value, depth)
            if field.pointer or found not in ("", 0, False, None, {}):
                made[field.name] = found
    return made


def _items(field_type: api_types.FieldType, value: int | bytes, depth: int) -> list[Any]:
    if field_type.of in _NUMBERS and isinstance(value, bytes):
        found, at = [], 0
        while at < len(value):
            number, at = varint(value, at)
            found.append(signed(number))
        return found
    return [_value(field_type, value, depth)]


def _entry(field_type: api_types.FieldType, data: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", _value(field_type, b"" if field_type.of not in _NUMBERS else 0, depth)
    for number, part in fields(data):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = _value(field_type, part, depth)
    return key, value


def _value(field_type: api_types.FieldType, value: int | bytes, depth: int) -> Any:
    """One value of a field, of its list or of its map."""
    if field_type.is_model:
        return _message(field_type.of, as_bytes(value), depth + 1)
    if field_type.of in _NUMBERS or field_type.of == api_types.BOOLEAN:
        if not isinstance(value, int):
            raise MalformedError("bytes where a number belongs")
        return bool(value) if field_type.of == api_types.BOOLEAN else signed(value)
    return _special(field_type.of, as_bytes(value))


def _special(kind: str, data: bytes) -> Any:
    """A value of a scalar type that is encoded as bytes or as a message."""
    found: Any
    if kind == api_types.BYTES:
        found = b64encode(data).decode()
    elif kind in _TIMES:
        found = _time(data, micro=kind == api_types.MICRO_TIME)
    elif kind == api_types.QUANTITY:
        found = next((_text(part) for number, part in fields(data) if number == 1), "") or "0"
    elif kind == api_types.INT_OR_STRING:
        parts = dict(fields(data))
        is_text = parts.get(1) == 1
        found = _text(parts.get(3, b"")) if is_text else signed(int(parts.get(2, 0)))
    elif kind in {api_types.ANY, api_types.FIELDS}:
        raw = next((as_bytes(part) for number, part in fields(data) if number == 1), b"")
        try:
            found = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError as error:
            raise MalformedError(str(error)) from None
    else:
        found = data.decode()
    return found


def _time(data: bytes, *, micro: bool) -> str | None:
    """A time from seconds and nanoseconds since 1970; `None` for Go's zero time."""
    if not data:
        return None
    parts = dict(fields(data))
    seconds, nanos = signed(int(parts.get(1, 0))), int(parts.get(2, 0))
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    if moment.year == 1:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06d}Z" if micro else "Z")
