"""Bodies of requests: bytes become an object of the kind that the path names, or are rejected.

Bodies are JSON, YAML, or `application/vnd.kubernetes.protobuf`, which newer kubectl and client-go
send. Of the last, the types of the fields are those of `schema.api_types`, their numbers those of
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

from podium.errors import InputError
from podium.lab.api.encoding import JSON, PROTOBUF, encode
from podium.lab.api.resources import Resource, to_stored
from podium.lab.api.status import StatusError, bad_request
from podium.lab.http.requests import object_media_type
from podium.lab.registry.custom_resources import admit_custom
from podium.lab.schema import api_types, typed_bodies
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted
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
from podium.objects.reading.yaml_text import documents


def read_object(
    resource: Resource, data: bytes, content_type: str, *, strict: bool = False
) -> JsonObject:
    """The object in a body, in the version in which it is stored.

    Unknown fields are rejected if the body is read *strict*.
    """
    if resource.custom is not None:
        item, _ = read_custom(resource, data, content_type, strict=strict)
        return to_stored(resource, item)
    item = read_kind(resource.kind, resource.group_version, data, content_type)
    if strict:
        typed_bodies.reject_unknown_fields(resource, item)
    return to_stored(resource, item)


def read_custom(
    resource: Resource, data: bytes, content_type: str, *, strict: bool = False
) -> tuple[JsonObject, list[str]]:
    """The custom object in a body, pruned and completed, and the fields that were pruned."""
    kind, group_version = resource.kind, resource.group_version
    item = typed_bodies.read_custom_object(kind, group_version, to_json(data, content_type))
    _check_kind(item, kind, group_version)
    return item, admit_custom(resource, item, strict=strict)


def read_kind(
    kind: str,
    group_version: str,
    data: bytes,
    content_type: str,
    *,
    other_versions: tuple[str, ...] = (),
) -> JsonObject:
    """The object in a body, whose `kind` and `apiVersion` must be these if it has them.

    *other_versions* are versions of the kind that have the same fields.
    """
    item = typed_bodies.read_object(kind, group_version, to_json(data, content_type))
    _check_kind(item, kind, group_version, *other_versions)
    return item


def read_eviction(data: bytes, content_type: str) -> JsonObject:
    """The `Eviction` in a body, in any of its versions."""
    versions = ("policy/v1beta1",)
    return read_kind("Eviction", "policy/v1", data, content_type, other_versions=versions)


def read_delete_options(data: bytes, content_type: str) -> JsonObject:
    """The `DeleteOptions` in a body, which every group has in every version; {} if it is empty."""
    if not data.strip():
        return {}
    json = to_json(data, content_type)
    item = typed_bodies.read_object("DeleteOptions", "meta.k8s.io/v1", json)
    own_kind = str(item.get("kind") or "DeleteOptions")
    if own_kind != "DeleteOptions":
        own_version = str(item.get("apiVersion") or "")
        raise _wrong_kind("DeleteOptions", "meta.k8s.io/v1", own_kind, own_version)
    return item


def _check_kind(item: JsonObject, kind: str, *versions: str) -> None:
    """Raise 400 if an object says that it is of another kind, or of none of these versions."""
    own_kind, own_version = (
        str(item.get("kind") or kind),
        str(item.get("apiVersion") or versions[0]),
    )
    if own_kind != kind or own_version not in versions:
        raise _wrong_kind(kind, versions[0], own_kind, own_version)


def _wrong_kind(kind: str, group_version: str, own_kind: str, own_version: str) -> StatusError:
    error = f"{own_kind} in version {quoted(own_version)} cannot be handled as a {kind}"
    reason = f"no kind {quoted(own_kind)} is registered for version {quoted(own_version)}"
    if own_kind != kind and own_version == group_version:
        reason = f"converting ({own_version}.{own_kind}) to ({kind}): unknown conversion"
    return bad_request(f"{error}: {reason}")


def to_json(data: bytes, content_type: str) -> bytes:
    """A body of any media type that holds an object, as JSON; 415 for other types."""
    media_type = object_media_type(content_type)
    if media_type == JSON:
        return data
    return encode(read_protobuf(data) if media_type == PROTOBUF else parse_yaml(data))


def parse_yaml(data: bytes) -> Any:
    """The only document in a body of YAML, of which JSON is a subset."""
    try:
        found = list(documents(data.decode()))
    except (InputError, UnicodeDecodeError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    if len(found) != 1:
        raise bad_request(f"the body must be one document, and has {len(found)}")
    return found[0].value


def parse_json(data: bytes) -> Any:
    """The value in a body of JSON, of any type."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"json parse error: {error}") from None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_LEVELS = 60
_NUMBERS = frozenset({api_types.INTEGER, api_types.LONG})
_TIMES = frozenset({api_types.TIME, api_types.MICRO_TIME})


def read_protobuf(data: bytes) -> JsonObject:
    """The object in a protobuf body; 400 if the body is malformed."""
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
        except (msgspec.DecodeError, RecursionError) as error:
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
