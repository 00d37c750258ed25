"""Canonical quantities, as the API server stores them: `1000m` is `1`, `1024Mi` is `1Gi`.

Two ways to write the same amount are therefore no change of an object. A binary suffix stays
binary and an exponent stays an exponent. Amounts of resources are rounded up to thousandths.

Upstream: apimachinery/pkg/api/resource, CanonicalizeBytes.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from podium.lab.schema import api_types
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, nano

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+$")
_MILLION, _BILLION = 10**6, 10**9


@lru_cache(maxsize=1 << 14)
def canonical(raw: str | float, *, milli: bool = False) -> str:
    """The canonical form of a quantity, rounded up to thousandths if *milli*.

    Text that is not a quantity stays as it is.
    """
    text = str(raw).strip()
    try:
        amount = nano(text)
    except QuantityError:
        return text
    if milli:
        sign = -1 if amount < 0 else 1
        amount = sign * -(-abs(amount) // _MILLION) * _MILLION
    if text.endswith("i") and abs(amount) >= 1024 * _BILLION and amount % _BILLION == 0:
        return _binary(amount // _BILLION)
    return _decimal(amount, exponent=_EXPONENT.search(text) is not None)


def _binary(whole: int) -> str:
    """An amount with the largest binary suffix that leaves an integer."""
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"


def _decimal(amount: int, *, exponent: bool) -> str:
    """An amount with the largest power of a thousand that leaves an integer."""
    power = -9 if amount else 0
    while amount and amount % 1000 == 0 and (exponent or power < 18):
        amount, power = amount // 1000, power + 3
    if exponent:
        return f"{amount}e{power}" if power else str(amount)
    return f"{amount}{_DECIMAL[power]}"


def with_canonical_quantities(kind: str, api_version: str, item: JsonObject) -> JsonObject:
    """The object, changed in place, with every quantity in canonical form."""
    model = api_types.model_of_kind(kind, api_version)
    if api_types.has_model(model):
        _canonicalize(model, item)
    return item


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
            for each in value if isinstance(value, list) else [value]:
                _canonicalize(field.of, each)
        elif not isinstance(value, dict):
            item[name] = _canonical_value(value, milli=False)
        else:
            item[name] = {key: _canonical_value(each, milli=True) for key, each in value.items()}


def _canonical_value(value: Any, *, milli: bool) -> Any:
    is_number = isinstance(value, str | int | float) and not isinstance(value, bool)
    return canonical(value, milli=milli) if is_number else value
