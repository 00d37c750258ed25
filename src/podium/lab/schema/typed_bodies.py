"""Whether the fields of an object have the types that the API gives them.

The models of `schema` become msgspec structs, field by field, so that one pass of a decoder in C
over the bytes of a request says whether everything in it is a text where a text belongs. Fields
that no model knows are let through, unless a client wants them refused.

Upstream: the texts are those of encoding/json and of the strict decoder of apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

import msgspec

from podium.lab.api.encoding import decode, encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, StatusError, bad_request
from podium.lab.schema import api_types as schema
from podium.lab.schema.quantities import with_canonical_quantities
from podium.objects.names import quoted
from podium.objects.reading.null_values import without_nulls

_QUANTITY = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,9})?$"
_TIME = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_QUANTITY_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_Quantity = Annotated[str, msgspec.Meta(pattern=_QUANTITY)] | int | float
_Time = Annotated[str, msgspec.Meta(pattern=_TIME)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    schema.STRING: str,
    schema.BYTES: str,
    schema.TIME: _Time,
    schema.MICRO_TIME: _Time,
    schema.BOOLEAN: bool,
    schema.ANY: Any,
    schema.FIELDS: Any,
    schema.INTEGER: _Int32,
    schema.LONG: _Int64,
    schema.INT_OR_STRING: _Int32 | str,
    schema.QUANTITY: _Quantity,
}
_GO = {
    schema.INTEGER: "int32",
    schema.LONG: "int64",
    schema.BOOLEAN: "bool",
    schema.TIME: "v1.Time",
    schema.MICRO_TIME: "v1.MicroTime",
    schema.INT_OR_STRING: "intstr.IntOrString",
    schema.QUANTITY: "resource.Quantity",
    schema.BYTES: "[]uint8",
}
_GOT = re.compile(r"got `(\w+)`")
_PLACE = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`")
_NAMES = {
    "str": "string", "int": "number", "float": "number", "object": "object", "array": "array",
    "bool": "bool", "null": "null",
}  # fmt: skip


def _hint(type: schema.FieldType) -> Any:  # noqa: A002
    """The annotation for one field; `null` is the same as nothing."""
    inner: Any = struct(type.of) if type.is_model else _SCALARS[type.of]
    if inner is not Any:
        inner |= None
    if type.container == schema.LIST:
        return list[inner] | None
    if type.container == schema.MAP:
        return dict[str, inner] | None
    return inner


@cache
def struct(name: str) -> Any:
    """The struct of a model."""
    known = schema.model(name)
    fields = [
        (f"f{index}", _hint(kind), msgspec.field(default=None, name=field))
        for index, (field, kind) in enumerate(known.fields.items())
    ]
    return msgspec.defstruct(known.short, fields)


@cache
def _decoder(model: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct(model))


def read(kind: str, group_version: str, data: bytes) -> JsonDict:
    """The object in *data*, of this kind; 400 if a field has the wrong type."""
    model = schema.model_of_kind(kind, group_version)
    try:
        _decoder(model).decode(data)
        item: JsonDict = decode(data)
    except msgspec.ValidationError as error:
        said = f"{kind} in version {quoted(group_version)} cannot be handled as a {kind}"
        raise bad_request(f"{said}: {_words(model, str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(kind, data, error) from None
    item = without_nulls(item) if b"null" in data else item
    return with_canonical_quantities(kind, group_version, item)


def checked(row: Resource, item: JsonDict) -> JsonDict:
    """*item* with every field of the right type; for what a patch has made."""
    return read(row.kind, row.group_version, json_of(item))


def json_of(item: JsonDict) -> bytes:
    """*item* as it would have come in."""
    try:
        return encode(item)
    except (msgspec.EncodeError, RecursionError, UnicodeEncodeError) as error:
        raise bad_request(f"the object cannot be written as JSON: {error}") from None


def _unreadable(kind: str, data: bytes, error: Exception) -> StatusError:
    what = "unexpected end of JSON input" if not data.strip() else str(error)
    shown = data[:40].decode("utf-8", "replace") if data else "<empty>"
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get "
        f"version/kind; json parse error: {what} ({shown})"
    )


def _words(model: str, message: str) -> str:
    """msgspec's complaint as encoding/json would put it."""
    place = _PLACE.search(message)
    steps = re.findall(r"[^.\[\]]+", re.sub(r"\[[^\]]*\]", "", place["path"] if place else ""))
    holder, type = _last(model, steps)  # noqa: A001
    if type is not None and type.of == schema.QUANTITY and "matching regex" in message:
        return f"{'.'.join(steps)}: {_QUANTITY_FORM}"
    got = _GOT.search(message)
    value = _NAMES.get(got[1] if got else "", "value")
    if got is None and "int" in message:
        value = "number"
    field = ".".join([holder, *steps]) if steps else holder
    where = f"Go struct field {field}" if steps else "Go value"
    return f"json: cannot unmarshal {value} into {where} of type {_go(type, holder)}"


def _last(model: str, steps: list[str]) -> tuple[str, schema.FieldType | None]:
    """The short name of the struct that holds the field, and the field's type."""
    holder, type = model, None  # noqa: A001
    for step in steps:
        if type is not None:
            if not type.is_model:
                break
            holder = type.of
        type = schema.model(holder).fields.get(step)  # noqa: A001
        if type is None:
            break
    return schema.short_name(holder), type


def _go(type: schema.FieldType | None, holder: str) -> str:  # noqa: A002
    if type is None:
        return f"v1.{holder}"
    name = f"v1.{schema.short_name(type.of)}" if type.is_model else _GO.get(type.of, "string")
    return {schema.LIST: f"[]{name}", schema.MAP: f"map[string]{name}"}.get(type.container, name)


def refuse_unknown(row: Resource, item: JsonDict, before: JsonDict | None = None) -> None:
    """400 for fields that the API does not have, unless they were there *before*."""
    known = set(unknown_fields(row.kind, row.group_version, before)) if before else set()
    found = unknown_fields(row.kind, row.group_version, item)
    fresh = [each for each in found if each not in known]
    if fresh:
        listed = ", ".join(f"unknown field {quoted(each)}" for each in fresh)
        said = f"{row.kind} in version {quoted(row.version)} cannot be handled as a {row.kind}"
        raise bad_request(f"{said}: strict decoding error: {listed}")


def unknown_fields(kind: str, group_version: str, item: JsonDict) -> list[str]:
    """Paths of fields that the API does not have."""
    return list(_unknown(schema.model_of_kind(kind, group_version), item, ""))


def _unknown(model: str, item: JsonDict, path: str) -> Iterator[str]:
    known = schema.model(model).fields
    for field, value in item.items():
        type = known.get(field)  # noqa: A001
        if type is None:
            yield f"{path}{field}"
        elif type.is_model and type.container == schema.LIST:
            for index, each in enumerate(value or ()):
                yield from _unknown(type.of, each, f"{path}{field}[{index}].")
        elif type.is_model and type.container == schema.MAP:
            for key, each in (value or {}).items():
                yield from _unknown(type.of, each, f"{path}{field}.{key}.")
        elif type.is_model and value:
            yield from _unknown(type.of, value, f"{path}{field}.")
