"""The quantities of an object, found by the types of its fields, so that all can be checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import inspect

from podium.objects.field_errors import joined
from podium.objects.kinds.meta import Object, RawQuantity

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Paths and values.
Quantities = list[tuple[str, RawQuantity]]
#: Adds the quantities in a value at a path.
_Finder = Callable[[Any, str, Quantities], None]
#: The types that `RawQuantity` is made of; no other field may be any of them.
_QUANTITY = {inspect.StrType, inspect.IntType, inspect.FloatType}


def quantities_of(item: Object) -> Quantities:
    """Path and value of every quantity in the object, in the order of its fields."""
    found: Quantities = []
    find = _finder_of(type(item))
    if find is not None:
        find(item, "", found)
    return found


@cache
def _finder_of(type_: type[Object]) -> _Finder | None:
    return _finder(inspect.type_info(type_))


def _finder(about: inspect.Type) -> _Finder | None:
    """What finds quantities in values of a type; None for a type that has none."""
    if isinstance(about, inspect.UnionType):
        if {type(each) for each in about.types} >= _QUANTITY:
            return _quantity
        inner = (_finder(each) for each in about.types)
        return next((each for each in inner if each is not None), None)
    if isinstance(about, inspect.ListType):
        item = _finder(about.item_type)
        return None if item is None else partial(_in_list, item)
    if isinstance(about, inspect.DictType):
        value = _finder(about.value_type)
        return None if value is None else partial(_in_map, value)
    if isinstance(about, inspect.StructType):
        fields = [(each.name, each.encode_name, _finder(each.type)) for each in about.fields]
        known = [(name, shown, find) for name, shown, find in fields if find is not None]
        return partial(_in_fields, known) if known else None
    return None


def _quantity(value: RawQuantity, path: str, found: Quantities) -> None:
    found.append((path, value))


def _in_list(find: _Finder, items: Sequence[Any], path: str, found: Quantities) -> None:
    for index, each in enumerate(items):
        find(each, f"{path}[{index}]", found)


def _in_map(find: _Finder, items: dict[str, Any], path: str, found: Quantities) -> None:
    for key, each in items.items():
        find(each, joined(path, key), found)


def _in_fields(
    fields: Sequence[tuple[str, str, _Finder]], value: Any, path: str, found: Quantities
) -> None:
    for name, shown, find in fields:
        each = getattr(value, name)
        if each is not None:
            find(each, f"{path}.{shown}" if path else shown, found)
