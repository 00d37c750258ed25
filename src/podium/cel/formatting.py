"""`"…".format([…])`: a text with clauses that values take the place of.

Upstream: version 2 of cel-go's extension for strings, with the locale en_US.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from podium.cel.errors import CelError
from podium.cel.times import Duration, Timestamp
from podium.cel.values import INT_MAX, TypeValue, is_number, type_name

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.([0-9]*))?(.)?)", re.DOTALL)
#: Go writes numbers with at most this many digits after the point.
_MOST_DIGITS: Final = 1_000_000
_NO_VERB: Final = "%!(NOVERB)"
_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NO_END: Final = "error while parsing precision: could not find end of precision specifier"


def format_text(
    text: str, values: list[Any], to_string: Callable[[Any], str], charge: Callable[[int], None]
) -> str:
    """The text with its clauses replaced; *charge* counts the characters that are made."""
    return "".join(_parts(text, values, to_string, charge))


def _parts(
    text: str, values: list[Any], to_string: Callable[[Any], str], charge: Callable[[int], None]
) -> Iterator[str]:
    at, used = 0, 0
    for found in _CLAUSE.finditer(text):
        yield text[at : found.start()]
        at = found.end()
        if found[0] == "%%":
            yield "%"
            continue
        if used >= len(values):
            raise CelError(f"index {used} out of range")
        if found[0] == "%":
            raise CelError("unexpected end of string")
        precision = _precision(found[1], found[2])
        try:
            made = _formatted(found[2], values[used], precision, to_string, charge)
        except _FormatError as error:
            raise CelError(f"error during formatting: {error}") from None
        charge(len(made))
        yield made
        used += 1
    yield text[at:]


class _FormatError(Exception):
    """A value does not fit its clause."""


def _precision(digits: str | None, verb: str | None) -> int | None:
    problem = ""
    if digits is not None and verb is None:
        problem = _NO_END
    elif digits is not None:
        kind = "invalid syntax" if not digits else "value out of range"
        if not digits or len(digits.lstrip("0")) > 19 or int(digits[-20:]) > INT_MAX:
            problem = (
                "error while parsing precision: error while converting precision to integer: "
                f'strconv.Atoi: parsing "{digits}": {kind}'
            )
    if not problem and verb is not None and verb not in "sdfebxXo":
        shown = verb if verb.isascii() else chr(verb.encode()[0])
        problem = f'unrecognized formatting clause "{shown}"'
    if problem:
        raise CelError(f"could not parse formatting clause: {problem}")
    return None if digits is None else int(digits[-20:])


def _formatted(
    verb: str,
    value: Any,
    precision: int | None,
    to_string: Callable[[Any], str],
    charge: Callable[[int], None],
) -> str:
    kind = type_name(value)
    if verb == "s":
        return _as_text(value, to_string, charge)
    if verb in "fe":
        named = {"f": "fixed-point", "e": "scientific"}[verb]
        number = _SPECIAL_NUMBERS.get(value) if isinstance(value, str) else value
        if not isinstance(number, float):
            raise _FormatError(f"{named} clause can only be used on doubles, was given {kind}")
        return (_fixed if verb == "f" else _scientific)(number, precision, charge)
    if verb == "b" and isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        return format(value, verb)
    if verb in "xX" and isinstance(value, str | bytes):
        found = (value.encode() if isinstance(value, str) else value).hex()
        return found if verb == "x" else found.upper()
    raise _FormatError(_WRONG_TYPE[verb].format(kind))


_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex, was given {}"
_WRONG_TYPE: Final = {
    "d": "decimal clause can only be used on integers, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": _HEX,
    "X": _HEX,
    "o": "octal clause can only be used on integers, was given {}",
}


def _fixed(number: float, precision: int | None, charge: Callable[[int], None]) -> str:
    digits = 6 if precision is None else precision
    if digits > _MOST_DIGITS:
        return _NO_VERB
    if not math.isfinite(number):
        return _unusual(number)
    charge(digits)
    return f"{number:,.{digits}f}"


def _scientific(number: float, precision: int | None, charge: Callable[[int], None]) -> str:
    """The precision is the width of the whole, as upstream."""
    width = 6 if precision is None else precision
    if width > _MOST_DIGITS:
        return _NO_VERB
    charge(width)
    if not math.isfinite(number):
        return _unusual(number).rjust(width)
    digits, _, exponent = f"{number:.6e}".partition("e")
    power = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
    return f"{digits}\u202f\u00d7\u202f10{power.translate(_RAISED)}".rjust(width)


def _unusual(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _as_text(value: Any, to_string: Callable[[Any], str], charge: Callable[[int], None]) -> str:
    charge(1)
    if isinstance(value, list):
        return "[" + ", ".join(_literal(each, to_string, charge) for each in value) + "]"
    if isinstance(value, dict):
        parts = [
            (_literal(key, to_string, charge), _literal(each, to_string, charge))
            for key, each in value.items()
        ]
        parts.sort(key=lambda each: each[0])
        return "{" + ", ".join(f"{key}:{each}" for key, each in parts) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, str | bytes | int | float | Timestamp | Duration):
        return to_string(value)
    raise _FormatError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        f"types, durations, and timestamps, was given {type_name(value)}"
    )


def _literal(value: Any, to_string: Callable[[Any], str], charge: Callable[[int], None]) -> str:
    """A value inside a list or map, as an expression would write it."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return "b" + _quoted(to_string(value))
    if isinstance(value, Timestamp | Duration):
        kind = "timestamp" if isinstance(value, Timestamp) else "duration"
        return f'{kind}("{value}")'
    if isinstance(value, float):
        usual = math.isfinite(value)
        return f"{value:.6f}" if usual else _quoted(to_string(value))
    if not isinstance(value, list | dict | bool | None) and not is_number(value):
        raise _FormatError(f"no formatting function for {type_name(value)}")
    return _as_text(value, to_string, charge)


def _quoted(text: str) -> str:
    return '"' + text.translate(_ESCAPES) + '"'


_ESCAPES: Final = {
    **{number: f"\\x{number:02x}" for number in (*range(32), 127)},
    7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r",
    34: '\\"', 92: "\\\\",
}  # fmt: skip
