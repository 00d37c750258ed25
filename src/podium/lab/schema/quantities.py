"""Canonical quantities, as the API server stores them: `1000m` is `1`, `1024Mi` is `1Gi`.

Two ways to write the same amount are therefore no change of an object. Amounts of resources are
rounded up to thousandths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from podium.lab.schema import api_types
from podium.objects.canonical_quantity import canonical
from podium.objects.kinds.meta import JsonObject

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
            for each in _objects(field, value):
                _canonicalize(field.of, each)
        elif isinstance(value, list):
            item[name] = [_canonical_value(each, milli=False) for each in value]
        elif not isinstance(value, dict):
            item[name] = _canonical_value(value, milli=False)
        else:
            milli = model not in _EXACT
            item[name] = {key: _canonical_value(each, milli=milli) for key, each in value.items()}


def _objects(field: api_types.FieldType, value: Any) -> Iterable[Any]:
    """The objects in the value of a field."""
    if isinstance(value, list):
        return value
    if field.container == api_types.MAP and isinstance(value, dict):
        return value.values()
    return [value]


def _canonical_value(value: Any, *, milli: bool) -> Any:
    is_number = isinstance(value, str | int | float) and not isinstance(value, bool)
    return canonical(value, milli=milli) if is_number else value
