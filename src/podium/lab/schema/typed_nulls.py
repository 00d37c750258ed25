"""`null` in an object of a known kind, which Go reads as the zero value of the field's type.

A null field of an object is the same as an absent one. A null element of a list, or entry of a map,
is the zero value of its type.
"""

from __future__ import annotations

from typing import Any, Final

from podium.lab.schema import api_types
from podium.objects.reading.null_values import without_nulls

_ZEROS: Final[dict[str, Any]] = {
    api_types.INTEGER: 0,
    api_types.LONG: 0,
    api_types.BOOLEAN: False,
    api_types.INT_OR_STRING: 0,
    api_types.QUANTITY: "0",
}


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
