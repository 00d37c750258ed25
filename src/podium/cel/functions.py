"""The functions and operators of the environment, as they behave at run time.

Arguments that no overload takes are an error. Functions that Kubernetes and the extensions of CEL
add name themselves and the types in it, those of the standard library do not, as in kube-scheduler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import islice, pairwise
from operator import ge, gt, le, lt
from typing import Any, Final

from podium.cel.errors import AbortError, CelError
from podium.cel.formatting import format_text
from podium.cel.named_formats import FORMATS, NamedFormat
from podium.cel.network import Cidr, Ip, Url, contains, is_valid
from podium.cel.regular_expressions import Pattern, PatternError, compile_pattern
from podium.cel.times import SECOND, Duration, Timestamp
from podium.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_SUCH_OVERLOAD,
    NONE,
    UINT_MAX,
    Charge,
    DomainMap,
    Optional,
    Quantity,
    Semver,
    UInt,
    equal,
    is_number,
    less,
    type_name,
    type_of,
)

Function = Callable[..., Any]


class NotApplicableError(Exception):
    """No overload of a function takes these arguments."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _need(*checks: bool) -> None:
    if not all(checks):
        raise CelError(NO_SUCH_OVERLOAD)


def _take(value: Any, kind: type) -> Any:
    """An argument that must be of a type; a boolean is no integer."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool | UInt)):
        raise NotApplicableError
    return value


def _convertible(name: str, value: Any, *, is_so: bool) -> None:
    """Refuse a value that the conversion of this name does not take."""
    if not is_so:
        raise CelError(f"{NO_SUCH_OVERLOAD}: {name}({type_name(value)})")


_ROWS: Final = (str, bytes, list)
_TIMES: Final = (Timestamp, Duration)
_KEYS: Final = (bool, int, str)
_COMPARED: Final = (bool, int, float, str, bytes, Timestamp, Duration)


#: Values whose type answers for operators that it does not have; the answer names none.
_RECEIVERS: Final = (str, Timestamp, Duration)


# Arithmetic ---------------------------------------------------------------------------------------


def _fitting(like: Any, number: int) -> int:
    if isinstance(like, UInt):
        if not 0 <= number <= UINT_MAX:
            raise CelError("unsigned integer overflow")
        return UInt(number)
    if not INT_MIN <= number <= INT_MAX:
        raise CelError("integer overflow")
    return number


def _same_numbers(operator: str, one: Any, two: Any) -> None:
    _need(not isinstance(one, _RECEIVERS))
    if not is_number(one):
        raise CelError(f"{NO_SUCH_OVERLOAD}: {operator}")
    _need(type(one) is type(two))


def concatenate(charge: Charge, one: Any, two: Any) -> Any:
    """Strings, bytes and lists in a row, and the sum of numbers (`+`)."""
    if isinstance(one, _ROWS):
        _need(type(one) is type(two))
        charge((len(one) + len(two)) // (1 if isinstance(one, list) else 10))
        return one + two
    return add(one, two)


def add(one: Any, two: Any) -> Any:
    """The sum of numbers of one type, of durations, or of a moment and a duration."""
    if isinstance(one, _TIMES):
        _need(isinstance(two, _TIMES))
        _need(isinstance(one, Duration) or isinstance(two, Duration))
        kind = Duration if isinstance(one, Duration) and isinstance(two, Duration) else Timestamp
        return kind.of(one.nanoseconds + two.nanoseconds)
    _same_numbers("_+_", one, two)
    return one + two if isinstance(one, float) else _fitting(one, one + two)


def subtract(one: Any, two: Any) -> Any:
    """The difference of two numbers, moments or durations (`-`)."""
    if isinstance(one, _TIMES):
        _need(isinstance(two, (type(one), Duration)))
        moved = isinstance(one, Timestamp) and isinstance(two, Duration)
        kind = Timestamp if moved else Duration
        return kind.of(one.nanoseconds - two.nanoseconds)
    _same_numbers("_-_", one, two)
    return one - two if isinstance(one, float) else _fitting(one, one - two)


def multiply(one: Any, two: Any) -> Any:
    """The product of two numbers (`*`)."""
    _same_numbers("_*_", one, two)
    return one * two if isinstance(one, float) else _fitting(one, one * two)


def divide(one: Any, two: Any) -> Any:
    """The quotient (`/`), of integers cut off toward zero."""
    _same_numbers("_/_", one, two)
    if isinstance(one, float):
        if two == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one)
        return one / two
    if two == 0:
        raise CelError("division by zero")
    quotient = abs(one) // abs(two)
    return _fitting(one, quotient if (one < 0) == (two < 0) else -quotient)


def remainder(one: Any, two: Any) -> Any:
    """The remainder (`%`), with the sign of the first number."""
    if isinstance(one, float):
        raise CelError(f"{NO_SUCH_OVERLOAD}: _%_")
    _same_numbers("_%_", one, two)
    if two == 0:
        raise CelError("modulus by zero")
    rest = abs(one) % abs(two)
    return _fitting(one, -rest if one < 0 else rest)


def negate(value: Any) -> Any:
    """The number with the other sign (`-`)."""
    _need(not isinstance(value, (bool, *_RECEIVERS)))
    if not is_number(value) or isinstance(value, UInt):
        raise CelError(f"{NO_SUCH_OVERLOAD}: -_")
    return -value if isinstance(value, float) else _fitting(value, -value)


def logical_not(value: Any) -> Any:
    """The opposite of a boolean (`!`)."""
    _need(isinstance(value, bool))
    return not value


def _comparison(operator: str, test: Callable[[Any, Any], bool]) -> Function:
    def run(one: Any, two: Any) -> bool:
        """Plain integers, which are most, are compared at once."""
        if type(one) is int and type(two) is int:
            return quick(one, two)
        if not isinstance(one, _COMPARED):
            raise CelError(f"{NO_SUCH_OVERLOAD}: {operator}")
        return test(one, two)

    quick: Callable[[int, int], bool] = _QUICK[operator]
    return run


_QUICK: Final = {"_<_": lt, "_<=_": le, "_>_": gt, "_>=_": ge}


# Lookups ------------------------------------------------------------------------------------------


def index(holder: Any, key: Any) -> Any:
    """An element of a list or a map."""
    found = find(holder, key)
    if found is None:
        if isinstance(holder, list):
            raise CelError(f"index out of bounds: {key}")
        raise CelError(f"no such key: {shown(key)}")
    return found[0]


def find(holder: Any, key: Any) -> tuple[Any] | None:
    """The same, in a tuple; None where there is none."""
    if isinstance(key, Semver | Quantity):
        raise CelError(f"invalid qualifier type: cel.{type(key).__name__}")
    if isinstance(holder, DomainMap):
        return (holder.find(key),)
    if isinstance(holder, dict):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, _KEYS):
            return None
        return (holder[key],) if key in holder else None
    if isinstance(holder, list):
        if not is_number(key) or (isinstance(key, float) and not key.is_integer()):
            raise CelError(f"unsupported index type '{type_name(key)}' in list")
        return (holder[int(key)],) if 0 <= key < len(holder) else None
    if isinstance(holder, Optional):
        return (optional_index(holder, key),)
    return None


def shown(key: Any) -> str:
    """A key as errors show it."""
    if isinstance(key, float):
        return _double_text(key)
    return str(key).lower() if isinstance(key, bool) else str(key)


def optional_index(holder: Any, key: Any) -> Optional:
    """An element that may be absent (`a.?b` and `a[?b]`)."""
    if isinstance(holder, Optional):
        if not holder.present:
            return NONE
        holder = holder.content
    found = find(holder, key)
    return NONE if found is None else Optional(present=True, content=found[0])


def contained(charge: Charge, value: Any, holder: Any) -> bool:
    """Whether a list has an element, or a map a key (`in`)."""
    if isinstance(holder, dict):
        return isinstance(value, _KEYS) and value in holder
    _need(isinstance(holder, list))
    charge(len(holder))
    return any(_equals(charge, value, each) for each in holder)


def _equals(charge: Charge, one: Any, two: Any) -> bool:
    try:
        return equal(one, two, charge)
    except AbortError:
        raise
    except CelError:
        return False


def equals(charge: Charge, one: Any, two: Any) -> bool:
    """Whether two values are equal (`==`)."""
    return equal(one, two, charge)


def unequal(charge: Charge, one: Any, two: Any) -> bool:
    """Whether two values differ (`!=`); as upstream, what cannot be compared is different."""
    return not _equals(charge, one, two)


def size(value: Any) -> int:
    """The number of characters, bytes or elements."""
    if not isinstance(value, str | bytes | list | dict):
        raise CelError(f"{NO_SUCH_OVERLOAD}: size")
    return len(value)


# Times --------------------------------------------------------------------------------------------


def to_duration(value: Any) -> Duration:
    """A value as a duration (`duration(x)`)."""
    _convertible("duration", value, is_so=isinstance(value, str | Duration))
    return Duration.parse(value) if isinstance(value, str) else value


def to_timestamp(value: Any) -> Timestamp:
    """A value as a moment (`timestamp(x)`): RFC 3339, or seconds since 1970."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        return Timestamp.parse(value)
    _convertible("timestamp", value, is_so=_whole(value))
    return Timestamp.of(value * SECOND)


def _of_moment(read: Callable[[Any], int]) -> Function:
    """A part of a moment in UTC, or in the time zone of the second argument."""

    def run(value: Any, zone: Any = "") -> int:
        if not isinstance(value, Timestamp) or not isinstance(zone, str):
            raise NotApplicableError
        return read(value.at(zone))

    return run


def _of_time(read: Callable[[Any], int], unit: int) -> Function:
    """A part of a moment, or how many units a duration has."""

    def run(value: Any, zone: Any = "") -> int:
        if isinstance(value, Duration):
            return value.count(unit)
        return int(_of_moment(read)(value, zone))

    return run


def milliseconds(value: Any, zone: Any = "") -> int:
    """The milliseconds of a moment's second, or those of a duration."""
    del zone
    if isinstance(value, Duration):
        return value.count(10**6)
    found: Timestamp = _take(value, Timestamp)
    return found.milliseconds


# Networks -----------------------------------------------------------------------------------------


def to_ip(value: Any) -> Ip:
    """A text as an IP address, or the address of a network (`ip(x)`, `x.ip()`)."""
    if isinstance(value, Cidr):
        return Ip(value.address)
    return Ip.parse(_take(value, str))


def _valid(kind: type[Ip | Cidr | Url]) -> Function:
    return lambda text: is_valid(kind, _take(text, str))


def is_canonical(text: Any) -> bool:
    """Whether an IP address is written in its usual form."""
    return bool(str(Ip.parse(_take(text, str))) == text)


def _of_ip(read: Callable[[Any], Any]) -> Function:
    return lambda value: read(_take(value, Ip).address)


def _is_local_multicast(address: Any) -> bool:
    if address.version == 4:
        return bool(address.packed[:3] == bytes((224, 0, 0)))
    return bool(address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02)


def _is_global_unicast(address: Any) -> bool:
    none = str(address) == "255.255.255.255" or address.is_unspecified or address.is_loopback
    return not (none or address.is_multicast or address.is_link_local)


def to_cidr(text: Any) -> Cidr:
    """A text as a network (`cidr(x)`)."""
    return Cidr.parse(_take(text, str))


def contains_ip(network: Any, other: Any) -> bool:
    """Whether a network contains an address, given as such or as text."""
    _take(network, Cidr)
    return contains(network, Ip.parse(other) if isinstance(other, str) else _take(other, Ip))


def contains_cidr(network: Any, other: Any) -> bool:
    """Whether a network contains another, given as such or as text."""
    _take(network, Cidr)
    return contains(network, Cidr.parse(other) if isinstance(other, str) else _take(other, Cidr))


def _of_cidr(read: Callable[[Cidr], Any]) -> Function:
    return lambda value: read(_take(value, Cidr))


def to_url(text: Any) -> Url:
    """A text as a URL (`url(x)`)."""
    return Url.parse(_take(text, str))


def _of_url(read: Callable[[Url], Any]) -> Function:
    return lambda value: read(_take(value, Url))


# Conversions --------------------------------------------------------------------------------------


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan"
    r"|0x(?:[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)p[+-]?[0-9]+)",
    re.IGNORECASE,
)
#: A number of 64 bits has at most this many digits.
_MOST_DIGITS: Final = 20


def _not_converted(value: Any, kind: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{kind}'")


def _digits(text: str, least: int, most: int) -> int | None:
    """The number that a text stands for, within bounds."""
    sign, digits = text[:1] == "-", text.lstrip("+-").lstrip("0") or "0"
    if not _INTEGER.fullmatch(text) or len(digits) > _MOST_DIGITS:
        return None
    number = -int(digits) if sign else int(digits)
    return number if least <= number <= most else None


def to_int(value: Any) -> int:
    """A value as an integer (`int(x)`)."""
    if isinstance(value, str):
        found = _digits(value, INT_MIN, INT_MAX)
        if found is None:
            raise _not_converted(value, "int")
        return found
    if isinstance(value, Timestamp):
        return value.nanoseconds // SECOND
    if isinstance(value, Duration):
        return value.nanoseconds
    _convertible("int", value, is_so=is_number(value))
    if isinstance(value, float) and not (math.isfinite(value) and INT_MIN < value < INT_MAX):
        raise CelError("integer overflow")
    return _fitting(0, int(value))


def to_uint(value: Any) -> int:
    """A value as an unsigned integer (`uint(x)`)."""
    if isinstance(value, str):
        found = _digits(value, 0, UINT_MAX) if value[:1] not in {"+", "-"} else None
        if found is None:
            raise _not_converted(value, "uint")
        return UInt(found)
    _convertible("uint", value, is_so=is_number(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise CelError("unsigned integer overflow")
    return _fitting(UInt(0), int(value))


def to_double(value: Any) -> float:
    """A value as a double (`double(x)`)."""
    if isinstance(value, str):
        found = _double(value)
        if found is None:
            raise _not_converted(value, "double")
        return found
    _convertible("double", value, is_so=is_number(value))
    return float(value)


def _double(text: str) -> float | None:
    """The number that a text stands for in Go; too large a number is none."""
    if not _DOUBLE.fullmatch(text):
        return None
    try:
        found = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return None
    return None if math.isinf(found) and "inf" not in text.lower() else found


def to_string(value: Any) -> str:
    """A value as a string (`string(x)`)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    known = isinstance(value, str | int | Timestamp | Duration | Ip | Cidr)
    _convertible("string", value, is_so=known)
    return str(value)


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text or "." not in text:
        return text
    return text.removesuffix(".0")


def to_bytes(value: Any) -> bytes:
    """A value as bytes (`bytes(x)`)."""
    _convertible("bytes", value, is_so=isinstance(value, str | bytes))
    return value if isinstance(value, bytes) else value.encode()


def to_bool(value: Any) -> bool:
    """A value as a boolean (`bool(x)`)."""
    if isinstance(value, str):
        if value in {"1", "t", "T", "TRUE", "true", "True"}:
            return True
        if value in {"0", "f", "F", "FALSE", "false", "False"}:
            return False
        raise _not_converted(value, "bool")
    _convertible("bool", value, is_so=isinstance(value, bool))
    return bool(value)


# Strings ------------------------------------------------------------------------------------------


def _strings(method: Callable[[str, str], Any]) -> Function:
    def run(text: Any, other: Any) -> Any:
        _need(isinstance(text, str), isinstance(other, str))
        return method(text, other)

    return run


#: The work of a compilation that found a pattern too large.
_TOO_LARGE: Final = 200_000


def _pattern(charge: Charge, text: str, expression: str, prefix: str) -> Pattern:
    """A compiled pattern. A match looks at each byte of the text, for each part of the pattern."""
    try:
        found = compile_pattern(expression)
    except PatternError as error:
        charge(_TOO_LARGE if "too large" in str(error) else len(expression))
        raise CelError(f"{prefix}{error}") from None
    charge(found.size + (len(text) // 10 + 1) * (found.size // 4 + 1))
    return found


def matches(charge: Charge, text: Any, expression: Any) -> bool:
    """Whether a regular expression matches anywhere in a text."""
    if not isinstance(text, str) and not isinstance(expression, str):
        raise CelError(f"{NO_SUCH_OVERLOAD}: matches")
    _need(isinstance(text, str), isinstance(expression, str))
    return _pattern(charge, text, expression, "").matches(text)


def regex_find(charge: Charge, text: Any, expression: Any) -> str:
    """The first match, empty without one."""
    return _pattern(charge, _take(text, str), _take(expression, str), "Illegal regex: ").first(text)


def regex_find_all(charge: Charge, text: Any, expression: Any, limit: Any = -1) -> list[str]:
    """All matches, at most *limit* of them."""
    _take(limit, int)
    found = _pattern(charge, _take(text, str), _take(expression, str), "Illegal regex: ")
    charge(len(text))
    return list(islice(found.all(text), None if limit < 0 else limit))


def char_at(text: Any, place: Any) -> str:
    """One character."""
    _take(text, str), _take(place, int)
    if not 0 <= place <= len(text):
        raise CelError(f"index out of range: {place}")
    return text[place : place + 1]  # type: ignore[no-any-return]


def substring(text: Any, start: Any, end: Any = None) -> str:
    """The characters from *start* up to *end*."""
    _take(text, str), _take(start, int)
    if end is None:
        if not 0 <= start <= len(text):
            raise CelError(f"index out of range: {start}")
        return text[start:]  # type: ignore[no-any-return]
    _take(end, int)
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise CelError(f"index out of range: {place}")
    return text[start:end]  # type: ignore[no-any-return]


def index_of(charge: Charge, holder: Any, wanted: Any, start: Any = None) -> int:
    """The place of a text in another, or of an element in a list; -1 without one."""
    if isinstance(holder, list):
        charge(len(holder))
        return next((i for i, each in enumerate(holder) if _equals(charge, wanted, each)), -1)
    _take(holder, str), _take(wanted, str)
    if start is None:
        return holder.find(wanted)  # type: ignore[no-any-return]
    if not 0 <= _take(start, int) <= len(holder):
        raise CelError(f"index out of range: {start}")
    return holder.find(wanted, start)  # type: ignore[no-any-return]


def last_index_of(charge: Charge, holder: Any, wanted: Any, start: Any = None) -> int:
    """The last such place."""
    if isinstance(holder, list):
        charge(len(holder))
        places = [i for i, each in enumerate(holder) if _equals(charge, wanted, each)]
        return places[-1] if places else -1
    _take(holder, str), _take(wanted, str)
    if start is None:
        return holder.rfind(wanted)  # type: ignore[no-any-return]
    if not 0 <= _take(start, int) <= len(holder):
        raise CelError(f"index out of range: {start}")
    return holder.rfind(wanted, 0, start + len(wanted))  # type: ignore[no-any-return]


def replace(charge: Charge, text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    """The text with some or all occurrences of a part replaced."""
    _take(text, str), _take(old, str), _take(new, str), _take(limit, int)
    limit = max(min(limit, INT_MAX), -1)
    times = text.count(old) if limit < 0 else min(text.count(old), limit)
    charge((len(text) + times * len(new)) // 10)
    return text.replace(old, new, limit)  # type: ignore[no-any-return]


def split(charge: Charge, text: Any, separator: Any, limit: Any = -1) -> list[str]:
    """The parts of a text between separators."""
    _take(text, str), _take(separator, str), _take(limit, int)
    charge(text.count(separator) + 1)
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        if 0 < limit < len(parts):
            parts[limit - 1 :] = ["".join(parts[limit - 1 :])]
        return parts
    return text.split(separator, limit - 1 if limit > 0 else -1)  # type: ignore[no-any-return]


def join(parts: Any, separator: Any = "") -> str:
    """Texts in a row."""
    for each in _take(parts, list):
        _need(isinstance(each, str))
    return _take(separator, str).join(parts)  # type: ignore[no-any-return]


def lower_ascii(text: Any) -> str:
    """The text with A to Z in lower case."""
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in _take(text, str))


def upper_ascii(text: Any) -> str:
    """The text with a to z in upper case."""
    return "".join(c.upper() if "a" <= c <= "z" else c for c in _take(text, str))


def trim(text: Any) -> str:
    """The text without white space at its ends."""
    return _take(text, str).strip()  # type: ignore[no-any-return]


_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quote(text: Any) -> str:
    """The text as a literal."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in _take(text, str)) + '"'


def formatted(charge: Charge, text: Any, values: Any) -> str:
    """The text with its clauses replaced by values (`"%s".format([x])`)."""
    return format_text(_take(text, str), _take(values, list), to_string, charge)


# Lists --------------------------------------------------------------------------------------------


def _numbers_or_texts(values: Any) -> list[Any]:
    found: list[Any] = _take(values, list)
    return found


def is_sorted(values: Any) -> bool:
    """Whether no element is less than the one before it."""
    found = _numbers_or_texts(values)
    return not any(less(two, one) for one, two in pairwise(found))


def total(values: Any) -> Any:
    """The sum of numbers."""
    found: Any = 0
    for place, each in enumerate(_numbers_or_texts(values)):
        found = each if place == 0 else add(found, each)
    return found


def smallest(values: Any) -> Any:
    """The least element."""
    return _extreme(values, "min", lambda one, two: less(two, one))


def largest(values: Any) -> Any:
    """The greatest element."""
    return _extreme(values, "max", less)


def _extreme(values: Any, name: str, worse: Callable[[Any, Any], bool]) -> Any:
    found = _numbers_or_texts(values)
    if not found:
        raise CelError(f"{name} called on empty list")
    best = found[0]
    for each in found[1:]:
        best = each if worse(best, each) else best
    return best


def sliced(values: Any, start: Any, end: Any) -> list[Any]:
    """The elements from *start* up to *end*."""
    found: list[Any] = _take(values, list)
    _take(start, int), _take(end, int)
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal")
    if end > len(found):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(found)}")
    return found[start:end]


def flatten(charge: Charge, values: Any, depth: Any = 1) -> list[Any]:
    """The elements of inner lists in their place."""
    if _take(depth, int) < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    charge(1 + len(_take(values, list)))
    for each in values:
        nested = isinstance(each, list) and depth > 0
        found += flatten(charge, each, depth - 1) if nested else [each]
    return found


def distinct(charge: Charge, values: Any) -> list[Any]:
    """Each element once."""
    found: list[Any] = []
    for each in _take(values, list):
        charge(len(found))
        if not any(_equals(charge, each, other) for other in found):
            found.append(each)
    return found


def counted(number: Any) -> list[int]:
    """The numbers from 0 on (`lists.range(n)`)."""
    return list(range(_take(number, int)))


def backwards(values: Any) -> Any:
    """The elements in reverse order."""
    return _take(values, list)[::-1]


def _order(one: Any, two: Any) -> int:
    return less(two, one) - less(one, two)


def in_order(values: Any) -> list[Any]:
    """The elements, sorted."""
    return sorted(_take(values, list), key=cmp_to_key(_order))


def in_order_of(values: Any, keys: Any) -> list[Any]:
    """The elements, sorted by keys of their own."""
    _take(values, list), _take(keys, list)
    places = sorted(range(len(keys)), key=cmp_to_key(lambda a, b: _order(keys[a], keys[b])))
    return [values[place] for place in places]


def _sets(test: Callable[[Charge, list[Any], list[Any]], bool]) -> Function:
    def run(charge: Charge, one: Any, two: Any) -> bool:
        return test(charge, _take(one, list), _take(two, list))

    return run


def _covers(charge: Charge, one: list[Any], two: list[Any]) -> bool:
    return all(contained(charge, each, one) for each in two)


def _meets(charge: Charge, one: list[Any], two: list[Any]) -> bool:
    return any(contained(charge, each, one) for each in two)


def _equivalent(charge: Charge, one: list[Any], two: list[Any]) -> bool:
    return _covers(charge, one, two) and _covers(charge, two, one)


def map_insert(charge: Charge, made: Any, *entry: Any) -> dict[Any, Any]:
    """The map that a loop makes, with one more entry or the entries of another map."""
    given = _take(entry[0], dict) if len(entry) == 1 else {entry[0]: entry[1]}
    charge(len(given))
    for key, value in given.items():
        if key in _take(made, dict):
            raise CelError(f"insert failed: key {shown(key)} already exists")
        made[key] = value
    return made  # type: ignore[no-any-return]


# Quantities and versions --------------------------------------------------------------------------


def quantity(text: Any) -> Quantity:
    """The quantity that a text stands for (`quantity("1Gi")`)."""
    return Quantity.parse(_take(text, str))


def is_quantity(text: Any) -> bool:
    """Whether a text is a quantity."""
    try:
        Quantity.parse(_take(text, str))
    except CelError:
        return False
    return True


def semver(text: Any, normalize: Any = False) -> Semver:  # noqa: FBT002 - a parameter of CEL
    """The version that a text stands for (`semver("1.2.3")`)."""
    _take(normalize, bool)
    return (Semver.normalized if normalize else Semver.parse)(_take(text, str))


def is_semver(text: Any, normalize: Any = False) -> bool:  # noqa: FBT002 - a parameter of CEL
    """Whether a text is a version."""
    try:
        semver(text, normalize)
    except CelError:
        return False
    return True


def compare_to(one: Any, two: Any) -> int:
    """The order of two quantities or versions: -1, 0 or 1."""
    if isinstance(one, Quantity):
        return one.compare(_take(two, Quantity))
    found: int = _take(one, Semver).compare(_take(two, Semver))
    return found


def is_greater(one: Any, two: Any) -> bool:
    """Whether a quantity or version is greater than another."""
    return compare_to(one, two) > 0


def is_less(one: Any, two: Any) -> bool:
    """Whether a quantity or version is less than another."""
    return compare_to(one, two) < 0


def quantity_add(one: Any, two: Any) -> Quantity:
    """The sum of a quantity and another, or a number."""
    found: Quantity = _take(one, Quantity).plus(_as_quantity(two))
    return found


def quantity_subtract(one: Any, two: Any) -> Quantity:
    """The difference."""
    found: Quantity = _take(one, Quantity).plus(_as_quantity(two).negated())
    return found


def _as_quantity(value: Any) -> Quantity:
    if _whole(value):
        return Quantity(short=True, digits=value, scale=0)
    found: Quantity = _take(value, Quantity)
    return found


def as_integer(value: Any) -> int:
    """The quantity as an integer, if it is one."""
    found = _take(value, Quantity).integer()
    if found is None:
        raise CelError("cannot convert value to integer")
    return found  # type: ignore[no-any-return]


def is_integer(value: Any) -> bool:
    """Whether the quantity is an integer."""
    return _take(value, Quantity).integer() is not None


def as_float(value: Any) -> float:
    """The quantity as a double."""
    found: float = _take(value, Quantity).approximate()
    return found


def sign(value: Any) -> int:
    """The sign of a quantity: -1, 0 or 1."""
    digits: int = _take(value, Quantity).digits
    return (digits > 0) - (digits < 0)


def _part(name: str) -> Function:
    def run(value: Any) -> int:
        version: Semver = _take(value, Semver)
        number = {"major": version.major, "minor": version.minor, "patch": version.patch}[name]
        return number if number <= INT_MAX else number - UINT_MAX - 1

    return run


def named_format(name: Any) -> Optional:
    """The format of a name, if there is one (`format.named("uuid")`)."""
    found = FORMATS.get(_take(name, str))
    return NONE if found is None else Optional(present=True, content=found)


def validate(named: Any, text: Any) -> Optional:
    """The reasons why a text is not of a format; absent if it is."""
    reasons = _take(named, NamedFormat).reasons(_take(text, str))
    return Optional(present=True, content=list(reasons)) if reasons else NONE


def _constant(value: Any) -> Function:
    return lambda: value


# Optional values ----------------------------------------------------------------------------------


def optional_of(value: Any) -> Optional:
    """A value that is there."""
    return Optional(present=True, content=value)


def optional_of_non_zero(value: Any) -> Optional:
    """A value that is there unless it is empty, zero or false."""
    return Optional(present=True, content=value) if value else NONE


def optional_none() -> Optional:
    """A value that is absent."""
    return NONE


def has_value(value: Any) -> bool:
    """Whether a value is there."""
    return bool(_take(value, Optional).present)


def optional_value(value: Any) -> Any:
    """The value that is there."""
    if not _take(value, Optional).present:
        raise CelError("optional.none() dereference")
    return value.content


def first(values: Any) -> Optional:
    """The first element."""
    return optional_index(_take(values, list), 0)


def last(values: Any) -> Optional:
    """The last element."""
    return optional_index(_take(values, list), len(values) - 1)


def unwrapped(values: Sequence[Any]) -> list[Any]:
    """The values of a list of optional values that are there."""
    return [each.content for each in values if each.present]


#: Operators and functions of the standard library.
STANDARD: Final[dict[str, Function]] = {
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": remainder,
    "-_": negate,
    "!_": logical_not,
    "_<_": _comparison("_<_", less),
    "_<=_": _comparison("_<=_", lambda one, two: not less(two, one)),
    "_>_": _comparison("_>_", lambda one, two: less(two, one)),
    "_>=_": _comparison("_>=_", lambda one, two: not less(one, two)),
    "_[_]": index,
    "_?._": optional_index,
    "_[?_]": optional_index,
    "size": size,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bytes": to_bytes,
    "bool": to_bool,
    "duration": to_duration,
    "timestamp": to_timestamp,
    "dyn": lambda value: value,
    "type": type_of,
    "contains": _strings(lambda text, part: part in text),
    "startsWith": _strings(str.startswith),
    "endsWith": _strings(str.endswith),
}
#: What extensions of CEL and Kubernetes add.
EXTENSIONS: Final[dict[str, Function]] = {
    "charAt": char_at,
    "join": join,
    "lowerAscii": lower_ascii,
    "upperAscii": upper_ascii,
    "substring": substring,
    "trim": trim,
    "strings.quote": quote,
    "isSorted": is_sorted,
    "sum": total,
    "min": smallest,
    "max": largest,
    "slice": sliced,
    "lists.range": counted,
    "reverse": backwards,
    "sort": in_order,
    "@sortByAssociatedKeys": in_order_of,
    "quantity": quantity,
    "isQuantity": is_quantity,
    "sign": sign,
    "add": quantity_add,
    "sub": quantity_subtract,
    "asInteger": as_integer,
    "isInteger": is_integer,
    "asApproximateFloat": as_float,
    "compareTo": compare_to,
    "isGreaterThan": is_greater,
    "isLessThan": is_less,
    "semver": semver,
    "isSemver": is_semver,
    "major": _part("major"),
    "minor": _part("minor"),
    "patch": _part("patch"),
    "getFullYear": _of_moment(lambda at: at.year),
    "getMonth": _of_moment(lambda at: at.month - 1),
    "getDate": _of_moment(lambda at: at.day),
    "getDayOfMonth": _of_moment(lambda at: at.day - 1),
    "getDayOfWeek": _of_moment(lambda at: at.isoweekday() % 7),
    "getDayOfYear": _of_moment(lambda at: at.timetuple().tm_yday - 1),
    "getHours": _of_time(lambda at: at.hour, 3600 * SECOND),
    "getMinutes": _of_time(lambda at: at.minute, 60 * SECOND),
    "getSeconds": _of_time(lambda at: at.second, SECOND),
    "getMilliseconds": milliseconds,
    "ip": to_ip,
    "isIP": _valid(Ip),
    "ip.isCanonical": is_canonical,
    "family": _of_ip(lambda address: address.version),
    "isUnspecified": _of_ip(lambda address: address.is_unspecified),
    "isLoopback": _of_ip(lambda address: address.is_loopback),
    "isLinkLocalMulticast": _of_ip(_is_local_multicast),
    "isLinkLocalUnicast": _of_ip(lambda address: address.is_link_local),
    "isGlobalUnicast": _of_ip(_is_global_unicast),
    "cidr": to_cidr,
    "isCIDR": _valid(Cidr),
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
    "masked": _of_cidr(Cidr.masked),
    "prefixLength": _of_cidr(lambda network: network.length),
    "url": to_url,
    "isURL": _valid(Url),
    "getScheme": _of_url(lambda found: found.scheme),
    "getHost": _of_url(lambda found: found.host),
    "getHostname": _of_url(lambda found: found.hostname),
    "getPort": _of_url(lambda found: found.port),
    "getEscapedPath": _of_url(lambda found: found.escaped_path),
    "getQuery": _of_url(Url.values),
    "format.named": named_format,
    **{f"format.{name}": _constant(each) for name, each in FORMATS.items()},
    "validate": validate,
    "optional.of": optional_of,
    "optional.ofNonZeroValue": optional_of_non_zero,
    "optional.none": optional_none,
    "hasValue": has_value,
    "value": optional_value,
    "first": first,
    "last": last,
    "optional.unwrap": unwrapped,
    "unwrapOpt": unwrapped,
}
#: Functions that count their work before they do it, because their cost leaves it out.
METERED: Final[dict[str, Function]] = {
    "_+_": concatenate,
    "_==_": equals,
    "@in": contained,
    "matches": matches,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "replace": replace,
    "split": split,
    "format": formatted,
    "find": regex_find,
    "findAll": regex_find_all,
    "flatten": flatten,
    "distinct": distinct,
    "sets.contains": _sets(_covers),
    "sets.equivalent": _sets(_equivalent),
    "sets.intersects": _sets(_meets),
    "cel.@mapInsert": map_insert,
}
#: Every function whose name has a prefix.
QUALIFIED: Final = frozenset(name for name in (*EXTENSIONS, *METERED) if "." in name)


def call(name: str, function: Function, arguments: Sequence[Any]) -> Any:
    """Call a function of an extension; arguments of other types are an error that names them."""
    try:
        return function(*arguments)
    except NotApplicableError:
        types = ", ".join(map(type_name, arguments))
        raise CelError(f"{NO_SUCH_OVERLOAD}: {name}({types})") from None
