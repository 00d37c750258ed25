"""Quantities: amounts as the API writes them, read and written exactly.

Kubernetes keeps a quantity in one of two ways, and they overflow differently, so both are
modelled: a *short* number (at most 18 digits, or a small binary multiple) is a 64-bit integer with
a decimal scale; everything else is a decimal of any length, rounded up to billionths, and capped
at 2^63-1 if it has a binary suffix. Reading a number that does not fit in 64 bits gives 0 or a
wrapped value, never an error; recordings depend on it.

Upstream: apimachinery/pkg/api/resource, Kubernetes v1.13 and v1.36.

A binary suffix stays binary and an exponent stays an exponent.

Upstream: apimachinery/pkg/api/resource, CanonicalizeBytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from podium.objects.kinds.meta import RawQuantity

INT64_MAX = 2**63 - 1
_NANO = -9
_MILLI = -3
_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)"
)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
#: Digits that a short number may have in front of a binary suffix; none for Pi and Ei.
_SHORT_BINARY = {"Ki": 11, "Mi": 8, "Gi": 5, "Ti": 2, "Pi": 0, "Ei": 0}
_SHORT_DECIMAL = 18
#: Multiplications by these powers of ten wrap around; any other overflow reads as 0.
_WRAPPING_POWERS = frozenset({0, 1, 2, 3, 6, 9})
#: Powers of ten above this one are all the same to 64-bit readers; keeps "1e999999999" cheap.
_HUGE_POWER = 1000
#: Of longer numbers the last digits are read, and that there are more: 64-bit readers see no
#: difference. Python does not convert longer ones.
LONGEST = 3_900
#: Digits after the point that are read; of the others only whether one is not zero.
_LONGEST_FRACTION = 100
#: Errors show this much of a text.
_SHOWN = 60


class QuantityError(ValueError):
    """The text is not a quantity."""


class Amount(NamedTuple):
    """`digits` x 10^`scale`, kept as a short number or as a long decimal."""

    short: bool
    digits: int
    scale: int


@lru_cache(maxsize=1 << 16)
def nano(raw: RawQuantity) -> int:
    """The exact amount in billionths; finer parts were rounded up, away from zero."""
    amount = _parse(raw)
    return int(amount.digits * 10 ** (min(amount.scale, _HUGE_POWER) - _NANO))


@lru_cache(maxsize=1 << 16)
def value(raw: RawQuantity) -> int:
    """Whole units, rounded up, in 64 bits."""
    return _scaled(_parse(raw), 0)


@lru_cache(maxsize=1 << 16)
def milli(raw: RawQuantity) -> int:
    """Thousandths, rounded up, in 64 bits."""
    return _scaled(_parse(raw), _MILLI)


def amount_of(raw: RawQuantity) -> Amount:
    """The amount as Kubernetes keeps it."""
    return _parse(raw)


def _parse(raw: RawQuantity) -> Amount:
    text = str(raw).strip()
    match = _FORM.fullmatch(text)
    if not match or not text:
        raise _error(raw)
    suffix = match["suffix"]
    power = _power_of_ten(suffix)
    if power is None:
        raise _error(raw)
    whole, fraction = match["whole"] or "0", match["fraction"] or ""
    if len(text) > LONGEST:
        whole, fraction = _shortened(whole, fraction)
    digits = int(whole + fraction) << _BINARY.get(suffix, 0)
    if match["sign"] == "-":
        digits = -digits
    scale = power - len(fraction)
    if _is_short(whole, fraction, suffix) and scale >= _NANO:
        return Amount(short=True, digits=digits, scale=scale)
    if not (match["zeros"] or match["whole"] or fraction):
        raise _error(raw)
    return _long(digits, scale, binary=suffix in _BINARY)


def _shortened(whole: str, fraction: str) -> tuple[str, str]:
    """A number that reads the same in 64 bits, rounded up to billionths."""
    if len(whole) > LONGEST:
        whole = f"1{whole[-LONGEST:]}"
    if len(fraction) > _LONGEST_FRACTION:
        more = fraction[_LONGEST_FRACTION:].strip("0")
        fraction = fraction[:_LONGEST_FRACTION] + ("1" if more else "")
    return whole, fraction


def _power_of_ten(suffix: str) -> int | None:
    """The power of ten that a suffix stands for; 0 for binary ones, `None` for nonsense."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    if suffix in _BINARY:
        return 0
    exponent = _EXPONENT.fullmatch(suffix)
    if not exponent or len(suffix) > LONGEST or not -INT64_MAX - 1 <= int(exponent[1]) <= INT64_MAX:
        return None
    return _wrap(int(exponent[1]), bits=32)


def _is_short(whole: str, fraction: str, suffix: str) -> bool:
    if suffix in _BINARY:
        return not fraction and len(whole) <= _SHORT_BINARY[suffix]
    return len(whole) + len(fraction) <= _SHORT_DECIMAL


def _long(digits: int, scale: int, *, binary: bool) -> Amount:
    """Round up to billionths, cap binary forms."""
    shift = scale - _NANO
    if digits == 0:
        billionths = 0
    elif shift >= 0:
        billionths = digits * 10 ** min(shift, _HUGE_POWER)
    else:
        billionths = _divide_up(digits, min(-shift, 2 * LONGEST))
    if binary and abs(billionths) > INT64_MAX * 10**9:
        return Amount(short=False, digits=INT64_MAX if digits > 0 else -INT64_MAX, scale=0)
    return Amount(short=False, digits=billionths, scale=_NANO)


def _scaled(amount: Amount, scale: int) -> int:
    power = amount.scale - scale
    if amount.short:
        return _scaled_short(amount.digits, power)
    if power >= 0:
        return _wrap(_wrap(amount.digits) * 10**power)
    return _scaled_down_long(amount.digits, 10**-power)


def _scaled_short(digits: int, power: int) -> int:
    if power < 0:
        return _divide_up(digits, -power)
    if power in _WRAPPING_POWERS:
        return _wrap(digits * 10**power)
    product = digits * 10 ** min(power, _SHORT_DECIMAL + 1)
    return product if abs(product) <= INT64_MAX else 0


def _scaled_down_long(digits: int, divisor: int) -> int:
    """Divide and add one for a remainder: right for positive numbers, and what upstream does."""
    if digits < INT64_MAX:
        wrapped = _wrap(digits)
        quotient, rest = divmod(abs(wrapped), divisor)
        return (quotient if wrapped >= 0 else -quotient) + (rest != 0)
    quotient, rest = divmod(digits, divisor)
    return _wrap(_wrap(quotient) + (rest != 0))


def _divide_up(digits: int, power: int) -> int:
    """Divide by a power of ten, rounding away from zero."""
    divisor: int = 10**power
    quotient = -(-abs(digits) // divisor)
    return quotient if digits >= 0 else -quotient


def _wrap(number: int, bits: int = 64) -> int:
    """Two's complement, as a machine integer would keep it."""
    half = 1 << (bits - 1)
    return (number + half) % (half << 1) - half


def _error(raw: RawQuantity) -> QuantityError:
    shown = repr(raw) if len(str(raw)) <= _SHOWN else f"{str(raw)[:_SHOWN]!r}…"
    return QuantityError(f"{shown} is not a quantity")


_DECIMAL_SUFFIXES = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT_AT_END = re.compile(r"[eE][-+]?[0-9]+$")
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
    return _decimal(amount, exponent=_EXPONENT_AT_END.search(text) is not None)


def in_binary(whole: int) -> str:
    """An amount in the binary format, as Kubernetes writes a computed one: 1536 is `1536`."""
    return _binary(whole) if abs(whole) >= _LEAST_BINARY else _decimal(whole * _BILLION)


def _binary(whole: int) -> str:
    """An amount with the largest binary suffix that leaves an integer."""
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY_SUFFIXES[power]}"


def _decimal(amount: int, *, exponent: bool = False) -> str:
    """An amount with the largest power of a thousand that leaves an integer."""
    power = -9 if amount else 0
    while amount and amount % 1000 == 0 and (exponent or power < 18):
        amount, power = amount // 1000, power + 3
    if exponent:
        return f"{amount}e{power}" if power else str(amount)
    return f"{amount}{_DECIMAL_SUFFIXES[power]}"
