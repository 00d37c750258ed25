"""The difference between two versions of an object, and the later version made from it.

A delta maps the name of each field that changed to its new value. Where both versions have a value
of the same class in the field, it maps to the delta between these. Lists and maps are replaced.

Pods change often and are small. Of them the fields `metadata`, `spec` and `status` that changed are
written whole: that takes a fraction of the time of finding out what is different in each.
"""

from __future__ import annotations

from functools import cache
from itertools import compress
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from podium.objects.kinds.meta import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T", bound=Value)
Delta = dict[str, Any]


@cache
def _fields(type_: type[Value]) -> tuple[tuple[str, ...], Callable[[Value], tuple[Any, ...]]]:
    """The names of the fields of a class, and what returns all their values."""
    names = type_.__struct_fields__
    if len(names) == 1:
        only = attrgetter(names[0])
        return names, lambda value: (only(value),)
    return names, attrgetter(*names)


@cache
def _types(type_: type[Value]) -> Mapping[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(type_)}


def delta(old: T, new: T) -> Delta:
    """The fields of *new* that differ from *old*."""
    found: Delta = {}
    names, values = _fields(type(old))
    before, after = values(old), values(new)
    # All fields are compared in one call: this is done for every change of every object.
    for place in compress(range(len(names)), map(ne, before, after)):
        first, second = before[place], after[place]
        if isinstance(first, Value) and type(first) is type(second):
            found[names[place]] = delta(first, second)
        else:
            found[names[place]] = second
    return found


def changed_fields(old: T, new: T) -> dict[str, Any]:
    """The fields of *new* that differ from *old*, each whole."""
    names, values = _fields(type(old))
    after = values(new)
    return dict(compress(zip(names, after, strict=True), map(ne, values(old), after)))


@cache
def _decoders(type_: type[Value]) -> Mapping[str, msgspec.msgpack.Decoder[Any]]:
    return {name: msgspec.msgpack.Decoder(field) for name, field in _types(type_).items()}


def with_fields(old: T, fields: Mapping[str, msgspec.Raw]) -> T:
    """The version that follows from *old* by other values of fields, as they were written."""
    decoders = _decoders(type(old))
    return replace(old, **{name: decoders[name].decode(raw) for name, raw in fields.items()})


def changed(old: T, change: Delta) -> T:
    """The version that follows from *old* by a delta, whose values are as they were decoded."""
    types = _types(type(old))
    values: dict[str, Any] = {}
    for name, value in change.items():
        before = getattr(old, name)
        if isinstance(before, Value) and isinstance(value, dict):
            values[name] = changed(before, value)
        else:
            values[name] = msgspec.convert(value, types[name])
    return replace(old, **values)
