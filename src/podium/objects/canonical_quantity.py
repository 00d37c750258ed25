"""Canonical quantities, as Kubernetes writes them: `1000m` is `1`, `1024Mi` is `1Gi`.

A binary suffix stays binary and an exponent stays an exponent.

Upstream: apimachinery/pkg/api/resource, CanonicalizeBytes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from podium.objects.quantity import LONGEST, QuantityError, nano

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+$")
#: Smaller amounts have no binary suffix.
_LEAST_BINARY = 1024
_MILLION, _BILLION = 10**6, 10**9


@lru_cache(maxsize=1 << 14)
def canonical(raw: str | float, *, milli: bool = False) -> str:
    """The canonical form of a quantity, rounded up to thousandths if *milli*.

    Text that is not a quantity, or is one of thousands of digits, stays as it is.
    """
    text = str(raw).strip()
    if len(text) > LONGEST:
        return text
    try:
        amount = nano(text)
    except QuantityError:
        return text
    if milli:
        sign = -1 if amount < 0 else 1
        amount = sign * -(-abs(amount) // _MILLION) * _MILLION
    if text.endswith("i") and abs(amount) >= _LEAST_BINARY * _BILLION and amount % _BILLION == 0:
        return _binary(amount // _BILLION)
    return _decimal(amount, exponent=_EXPONENT.search(text) is not None)


def in_binary(whole: int) -> str:
    """An amount in the binary format, as Kubernetes writes a computed one: 1536 is `1536`."""
    return _binary(whole) if abs(whole) >= _LEAST_BINARY else _decimal(whole * _BILLION)


def _binary(whole: int) -> str:
    """An amount with the largest binary suffix that leaves an integer."""
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"


def _decimal(amount: int, *, exponent: bool = False) -> str:
    """An amount with the largest power of a thousand that leaves an integer."""
    power = -9 if amount else 0
    while amount and amount % 1000 == 0 and (exponent or power < 18):
        amount, power = amount // 1000, power + 3
    if exponent:
        return f"{amount}e{power}" if power else str(amount)
    return f"{amount}{_DECIMAL[power]}"
