"""Reading objects from JSON, with each field of the type that the API gives it.

The models of `api_types` become msgspec structs. One pass of a compiled decoder over the bytes of a
request checks the types of all its fields. Unknown fields are kept, unless the client asks for
strict field validation.

Go reads `null` as the zero value of the field's type. A null field of an object is the same as an
absent one. A null element of a list, or entry of a map, is the zero value of its type.

Quantities become canonical, as the API server stores them: `1000m` is `1`, `1024Mi` is `1Gi`. Two
ways to write the same amount are therefore no change of an object. Amounts of resources are rounded
up to thousandths.

Upstream: the messages are those of encoding/json and of the strict decoder of apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from podium.lab.api.encoding import decode, encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError, bad_request
from podium.lab.schema import api_types
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted
from podium.objects.quantity import canonical
from podium.objects.reading.json_text import without_nulls

#: Models whose amounts are not rounded: capacities of devices.
_EXACT: Final = frozenset({"V1CapacityRequirements", "V1DeviceRequestAllocationResult"})


def with_canonical_quantities(kind: str, api_version: str, item: JsonObject) -> JsonObject:
    """The object, changed in place, with every quantity in canonical form."""
    model = api_types.model_of_kind(kind, api_version)
    if api_types.has_model(model):
        _canonicalize(model, item)
    return item


def quantities_in(kind: str, api_version: str, item: JsonObject) -> Iterator[tuple[str, Any]]:
    """The path and the value of every quantity, as it is written."""
    model = api_types.model_of_kind(kind, api_version)
    if api_types.has_model(model):
        yield from _quantities(model, item, "")


def _quantities(model: str, item: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, field in _fields_to_visit(model).items() if isinstance(item, dict) else ():
        for inner, value in _parts(f"{path}{name}", item.get(name), field):
            if field.of == api_types.QUANTITY:
                yield inner, value
            else:
                yield from _quantities(field.of, value, f"{inner}.")


def _parts(path: str, value: Any, field: api_types.FieldType) -> Iterator[tuple[str, Any]]:
    """The values in a list or a map with their paths, or the value itself."""
    if isinstance(value, list):
        yield from ((f"{path}[{index}]", each) for index, each in enumerate(value))
    elif isinstance(value, dict) and field.container == api_types.MAP:
        yield from ((f"{path}.{key}", each) for key, each in value.items())
    elif value is not None:
        yield path, value


@cache
def _fields_to_visit(model: str) -> dict[str, api_types.FieldType]:
    """The fields that are quantities or objects with quantities in them."""
    return {
        name: field
        for name, field in api_types.model(model).fields.items()
        if field.of == api_types.QUANTITY or (field.is_model and _has_quantities(field.of))
    }


@cache
def _has_quantities(model: str) -> bool:
    return any(
        field.of == api_types.QUANTITY
        for each in api_types.reachable(model)
        for field in api_types.model(each).fields.values()
    )


def _canonicalize(model: str, item: Any) -> None:
    if not isinstance(item, dict):
        return
    for name, field in _fields_to_visit(model).items():
        value = item.get(name)
        if value is None:
            continue
        if field.of != api_types.QUANTITY:
            for _, each in _parts("", value, field):
                _canonicalize(field.of, each)
        elif isinstance(value, list):
            item[name] = [_canonical_value(each, milli=False) for each in value]
        elif not isinstance(value, dict):
            item[name] = _canonical_value(value, milli=False)
        else:
            milli = model not in _EXACT
            item[name] = {key: _canonical_value(each, milli=milli) for key, each in value.items()}


def _canonical_value(value: Any, *, milli: bool) -> Any:
    is_number = isinstance(value, str | int | float) and not isinstance(value, bool)
    return canonical(value, milli=milli) if is_number else value


_ZEROS: Final[dict[str, Any]] = {
    api_types.INTEGER: 0,
    api_types.LONG: 0,
    api_types.BOOLEAN: False,
    api_types.INT_OR_STRING: 0,
    api_types.QUANTITY: "0",
}
_QUANTITY = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,9})?$"
_TIME = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_QUANTITY_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_Quantity = Annotated[str, msgspec.Meta(pattern=_QUANTITY)] | int | float
_Time = Annotated[str, msgspec.Meta(pattern=_TIME)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    api_types.STRING: str,
    api_types.BYTES: str,
    api_types.TIME: _Time,
    api_types.MICRO_TIME: _Time,
    api_types.BOOLEAN: bool,
    api_types.ANY: Any,
    api_types.FIELDS: Any,
    api_types.INTEGER: _Int32,
    api_types.LONG: _Int64,
    api_types.INT_OR_STRING: _Int32 | str,
    api_types.QUANTITY: _Quantity,
}
_GO_TYPES = {
    api_types.INTEGER: "int32",
    api_types.LONG: "int64",
    api_types.BOOLEAN: "bool",
    api_types.TIME: "v1.Time",
    api_types.MICRO_TIME: "v1.MicroTime",
    api_types.INT_OR_STRING: "intstr.IntOrString",
    api_types.QUANTITY: "resource.Quantity",
    api_types.BYTES: "[]uint8",
}
_FOUND = re.compile(r"got `(\w+)`")
_PATH = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`")
_JSON_TYPES = {
    "str": "string", "int": "number", "float": "number", "object": "object", "array": "array",
    "bool": "bool", "null": "null",
}  # fmt: skip


def without_typed_nulls(model: str, item: dict[str, Any]) -> dict[str, Any]:
    """A copy of an object of a model without `null`."""
    known = api_types.model(model).fields
    return {
        name: _value(known[name], each) if name in known else without_nulls(each, name)
        for name, each in item.items()
        if each is not None
    }


def _value(kind: api_types.FieldType, value: Any) -> Any:
    if kind.container == api_types.LIST:
        return [_element(kind.of, each) for each in value]
    if kind.container == api_types.MAP:
        return {key: _element(kind.of, each) for key, each in value.items()}
    return _element(kind.of, value)


def _element(of: str, value: Any) -> Any:
    if of in {api_types.ANY, api_types.FIELDS}:
        return without_nulls(value)
    if of in api_types.SCALARS:
        return _ZEROS.get(of, "") if value is None else value
    return without_typed_nulls(of, {} if value is None else value)


def _hint(field_type: api_types.FieldType) -> Any:
    """The type annotation of a field of a struct; every value may be `null`."""
    inner: Any = _struct(field_type.of) if field_type.is_model else _SCALARS[field_type.of]
    if inner is not Any:
        inner |= None
    if field_type.container == api_types.LIST:
        return list[inner] | None
    if field_type.container == api_types.MAP:
        return dict[str, inner] | None
    return inner


@cache
def _struct(name: str) -> Any:
    """The msgspec struct of a model."""
    known = api_types.model(name)
    fields = [
        (f"f{index}", _hint(kind), msgspec.field(default=None, name=field))
        for index, (field, kind) in enumerate(known.fields.items())
    ]
    return msgspec.defstruct(known.short, fields)


@cache
def _decoder(model: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_struct(model))


def read_object(kind: str, group_version: str, data: bytes) -> JsonObject:
    """The object of this kind in the JSON *data*; 400 if a field has the wrong type."""
    model = api_types.model_of_kind(kind, group_version)
    try:
        _decoder(model).decode(data)
        item: JsonObject = decode(data)
    except msgspec.ValidationError as error:
        reason = _type_error(model, str(error))
        raise bad_request(f"{_unhandled(kind, group_version)}: {reason}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(kind, data, error) from None
    item = without_typed_nulls(model, item) if b"null" in data else item
    return with_canonical_quantities(kind, group_version, item)


def read_custom_object(kind: str, group_version: str, data: bytes) -> JsonObject:
    """The custom object in the JSON *data*; 400 if its metadata has a field of the wrong type."""
    try:
        item: Any = decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(kind, data, error) from None
    if not isinstance(item, dict):
        raise bad_request(f"{_unhandled(kind, group_version)}: the body must be a mapping")
    check_custom_metadata(item)
    return item


def check_custom_metadata(item: JsonObject) -> None:
    """Raise 400 if the metadata of a custom object has a field of the wrong type."""
    metadata = item.setdefault("metadata", {})
    try:
        _decoder("V1ObjectMeta").decode(encode(metadata))
    except msgspec.ValidationError as error:
        reason = _type_error("V1ObjectMeta", str(error))
        raise bad_request(f"metadata: {reason}") from None


def check_types(resource: Resource, item: JsonObject) -> JsonObject:
    """*item* as it is read from JSON; 400 if a field has the wrong type."""
    return read_object(resource.kind, resource.group_version, to_json(item))


def refuse_wrong_types(resource: Resource, item: JsonObject) -> None:
    """400 if a field of *item* has the wrong type."""
    data = to_json(item)
    try:
        _decoder(api_types.model_of_kind(resource.kind, resource.group_version)).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read_object(resource.kind, resource.group_version, data)  # says what is wrong


def to_json(item: JsonObject) -> bytes:
    """*item* as JSON; 400 if it cannot be written."""
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


def _type_error(model: str, message: str) -> str:
    """An error of msgspec in the words of encoding/json."""
    place = _PATH.search(message)
    steps = re.findall(r"[^.\[\]]+", re.sub(r"\[[^\]]*\]", "", place["path"] if place else ""))
    holder, field_type = _field_at(model, steps)
    is_quantity = field_type is not None and field_type.of == api_types.QUANTITY
    if is_quantity and "matching regex" in message:
        return f"{'.'.join(steps)}: {_QUANTITY_ERROR}"
    found = _FOUND.search(message)
    value = _JSON_TYPES.get(found[1] if found else "", "value")
    if found is None and "int" in message:
        value = "number"
    field = ".".join([holder, *steps]) if steps else holder
    where = f"Go struct field {field}" if steps else "Go value"
    return f"json: cannot unmarshal {value} into {where} of type {_go_type(field_type, holder)}"


def _field_at(model: str, steps: list[str]) -> tuple[str, api_types.FieldType | None]:
    """The short name of the model that has the field at the end of a path, and the field's type."""
    holder, field_type = model, None
    for step in steps:
        if field_type is not None:
            if not field_type.is_model:
                break
            holder = field_type.of
        field_type = api_types.model(holder).fields.get(step)
        if field_type is None:
            break
    return api_types.short_name(holder), field_type


def _go_type(field_type: api_types.FieldType | None, holder: str) -> str:
    if field_type is None:
        return f"v1.{holder}"
    if field_type.is_model:
        name = f"v1.{api_types.short_name(field_type.of)}"
    else:
        name = _GO_TYPES.get(field_type.of, "string")
    containers = {api_types.LIST: f"[]{name}", api_types.MAP: f"map[string]{name}"}
    return containers.get(field_type.container, name)


def reject_unknown_fields(
    resource: Resource, item: JsonObject, before: JsonObject | None = None
) -> None:
    """Raise 400 if *item* has fields that the API does not have and that *before* does not have."""
    kind, version = resource.kind, resource.group_version
    known = set(unknown_fields(kind, version, before)) if before else set()
    new = [each for each in unknown_fields(kind, version, item) if each not in known]
    if new:
        listed = ", ".join(f"unknown field {quoted(each)}" for each in new)
        error = _unhandled(kind, resource.version)
        raise bad_request(f"{error}: strict decoding error: {listed}")


def _unhandled(kind: str, version: str) -> str:
    return f"{kind} in version {quoted(version)} cannot be handled as a {kind}"


def unknown_fields(kind: str, group_version: str, item: JsonObject) -> list[str]:
    """The paths of the fields that the API does not have."""
    return list(_unknown(api_types.model_of_kind(kind, group_version), item, ""))


def _unknown(model: str, item: JsonObject, path: str) -> Iterator[str]:
    known = api_types.model(model).fields
    for field, value in item.items():
        field_type = known.get(field)
        if field_type is None:
            yield f"{path}{field}"
        elif field_type.is_model:
            for inner, each in _parts(f"{path}{field}", value, field_type):
                yield from _unknown(field_type.of, each, f"{inner}.")
