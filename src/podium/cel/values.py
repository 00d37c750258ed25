"""The values of CEL that Python has no type for, and the errors of an evaluation.

Booleans, integers, doubles, strings, bytes, null, lists and maps are plain Python values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, ClassVar, Final

from podium.cel.errors import CelError
from podium.objects.quantity import QuantityError, amount_of

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
NO_SUCH_OVERLOAD: Final = "no such overload"
QUANTITY_SYNTAX: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
UNKNOWN_SUFFIX: Final = "unable to parse quantity's suffix"
_QUANTITY: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
#: Powers of ten that are further apart compare like these.
_FAR_APART: Final = 10_000
#: A number that Go reads into 64 bits has at most this many digits.
_MOST_DIGITS: Final = 20


#: Counts work before it is done; raises when it becomes too much.
Charge = Callable[[int], None]


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    present: bool
    content: Any = None


NONE: Final = Optional(present=False)


class DomainMap(dict[str, Any]):
    """Attributes or capacities by domain: a domain that is not there reads as an empty map.

    `in` and loops see only the domains that are there.
    """

    __slots__ = ()

    def find(self, key: Any) -> Any:
        """What is under a domain."""
        return self.get(key, _EMPTY) if isinstance(key, str) else _EMPTY


_EMPTY: Final[dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity: `digits` x 10^`scale`, short (64 bits) or long as Kubernetes keeps it."""

    short: bool
    digits: int
    scale: int
    #: Whether it was computed. kube-scheduler holds computed quantities by reference, and does not
    #: recognise them on the right of `==`.
    computed: bool = False

    @classmethod
    def parse(cls, text: Any) -> Quantity:
        """Read a quantity; anything else is an error."""
        try:
            if isinstance(text, str) and text != text.strip():
                raise CelError(QUANTITY_SYNTAX)
            found = amount_of(text)
        except QuantityError:
            known = _QUANTITY.fullmatch(str(text))
            raise CelError(UNKNOWN_SUFFIX if known else QUANTITY_SYNTAX) from None
        return cls(found.short, found.digits, found.scale)

    def compare(self, other: Quantity) -> int:
        """Less, equal or greater: -1, 0 or 1."""
        one, two = _aligned(self, other)
        return (one > two) - (one < two)

    def plus(self, other: Quantity) -> Quantity:
        """The sum."""
        if self.short and other.short:
            if not self.digits:
                return Quantity(other.short, other.digits, other.scale, computed=True)
            one, two = _aligned(self, other)
            scale = min(self.scale, other.scale)
            if INT_MIN <= one + two <= INT_MAX:
                return Quantity(short=True, digits=one + two, scale=scale, computed=True)
        one, two = _aligned(self, other)
        return Quantity(False, one + two, min(self.scale, other.scale), computed=True)  # noqa: FBT003

    def negated(self) -> Quantity:
        """The opposite amount."""
        return Quantity(self.short, -self.digits, self.scale, self.computed)

    def integer(self) -> int | None:
        """The amount in 64 bits; None where Kubernetes keeps it as a fraction or a long decimal."""
        if not self.short or self.scale < 0:
            return None
        whole = self.digits * 10 ** min(self.scale, _MOST_DIGITS)
        return whole if INT_MIN <= whole <= INT_MAX else None

    def approximate(self) -> float:
        """The amount as a double."""
        try:
            return self.digits * 10.0**self.scale
        except OverflowError:  # more digits, or a higher power, than a double has
            return math.copysign(math.inf, self.digits) if self.digits else 0.0


def _aligned(one: Quantity, two: Quantity) -> tuple[int, int]:
    scale = min(one.scale, two.scale)
    powers = (min(each.scale - scale, _FAR_APART) for each in (one, two))
    first, second = (10**power for power in powers)
    return one.digits * first, two.digits * second


_PRE_RELEASE: Final = re.compile(r"[0-9A-Za-z-]+")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version; builds do not count when versions are compared."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key() == other._key()

    def __lt__(self, other: Semver) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.pre))

    def compare(self, other: Semver) -> int:
        """Less, equal or greater: -1, 0 or 1."""
        return (self > other) - (self < other)

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]:
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Read a version; the errors are those of the library that kube-scheduler uses."""
        if not text:
            raise CelError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise CelError("No Major.Minor.Patch elements found")
        major = _number(parts[0], "Major", "major")
        minor = _number(parts[1], "Minor", "minor")
        rest, plus, builds = parts[2].partition("+")
        patch_text, dash, pre_text = rest.partition("-")
        patch = _number(patch_text, "Patch", "patch")
        pre = tuple(map(_pre_release, pre_text.split("."))) if dash else ()
        build = tuple(builds.split(".")) if plus else ()
        for each in build:
            if not each:
                raise CelError("Build meta data is empty")
            if not _PRE_RELEASE.fullmatch(each):
                raise CelError(f'Invalid character(s) found in build meta data "{each}"')
        return cls(major, minor, patch, pre, build)

    @classmethod
    def normalized(cls, text: str) -> Semver:
        """Read a version with a `v` in front, leading zeros, or missing parts."""
        parts = text.removeprefix("v").split(".", 2)
        for index, part in enumerate(parts):
            if len(part) > 1:
                short = part.lstrip("0")
                parts[index] = short if short[:1].isdigit() else f"0{short}"
        if len(parts) < 3:
            if "+" in parts[-1] or "-" in parts[-1]:
                raise CelError("short version cannot contain PreRelease/Build meta data")
            parts += ["0"] * (3 - len(parts))
        return cls.parse(".".join(parts))


def _number(text: str, name: str, lower: str) -> int:
    if not text or not text.isascii() or not text.isdigit():
        if text:
            raise CelError(f'Invalid character(s) found in {lower} number "{text}"')
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 1 and text[0] == "0":
        raise CelError(f'{name} number must not contain leading zeroes "{text}"')
    return _uint64(text)


def _uint64(text: str) -> int:
    """Digits as a number of 64 bits."""
    if len(text) > _MOST_DIGITS or int(text) > UINT_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _pre_release(text: str) -> str:
    if not text:
        raise CelError("Prerelease is empty")
    if not _PRE_RELEASE.fullmatch(text):
        raise CelError(f'Invalid character(s) found in prerelease "{text}"')
    if text.isdigit() and len(text) > 1 and text[0] == "0":
        raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
    if text.isdigit():
        _uint64(text)
    return text


class Opaque:
    """A value of a type that only its own functions look into."""

    __slots__ = ()
    cel_name: ClassVar[str]
    #: Whether `<` and its like apply; such values are also unequal to values of other types.
    ordered: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what `type(x)` returns, and what a name such as `int` stands for."""

    name: str

    def __str__(self) -> str:
        return self.name


_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (TypeValue, "type"),
    (bool, "bool"),
    (UInt, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (Quantity, "kubernetes.Quantity"),
    (Semver, "kubernetes.Semver"),
    (Optional, "optional_type"),
)


def type_of(value: Any) -> TypeValue:
    """The type of a value (`type(x)`)."""
    return TypeValue(type_name(value))


def type_name(value: Any) -> str:
    """The name of the type of a value."""
    if isinstance(value, Opaque):
        return value.cel_name
    return next((name for kind, name in _NAMES if isinstance(value, kind)), "null_type")


_NUMBERS: Final = (int, float)
_ORDERED: Final = (bool, str, bytes)
_COMPARABLE: Final = (Quantity, Semver)
_HOLDERS: Final = (list, dict, Optional)
#: The work of comparing two elements.
_COMPARED: Final = 4


def is_number(value: Any) -> bool:
    """Whether a value is an integer or a double."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _uncounted(_: int) -> None:
    """Work that is small."""


def equal(one: Any, two: Any, charge: Charge = _uncounted) -> bool:
    """Whether two values are equal; values of different types are not, except numbers.

    A quantity, or a version, cannot be compared with anything but its like. What lists and maps
    hold is compared as well, and counted.
    """
    if one is None or two is None:
        return one is two
    if isinstance(one, _COMPARABLE):
        return _same_opaque(one, two)
    if isinstance(one, Opaque) and not one.ordered and type(one) is not type(two):
        raise CelError(NO_SUCH_OVERLOAD)
    if is_number(one) and is_number(two):
        return bool(one == two)
    if isinstance(one, _HOLDERS):
        return type_name(one) == type_name(two) and _same_content(one, two, charge)
    return type(one) is type(two) and bool(one == two)


def _same_opaque(one: Quantity | Semver, two: Any) -> bool:
    if isinstance(one, Quantity) and isinstance(two, Quantity) and not two.computed:
        return one.compare(two) == 0
    if isinstance(one, Semver) and isinstance(two, Semver):
        return one == two
    raise CelError(NO_SUCH_OVERLOAD)


def _same_content(one: Any, two: Any, charge: Charge) -> bool:
    if isinstance(one, Optional):
        if one.present != two.present:
            return False
        return not one.present or equal(one.content, two.content, charge)
    if len(one) != len(two):
        return False
    charge(_COMPARED * (1 + len(one)))
    if isinstance(one, list):
        return all(equal(*pair, charge) for pair in zip(one, two, strict=True))
    return all(key in two and equal(value, two[key], charge) for key, value in one.items())


def less(one: Any, two: Any) -> bool:
    """Whether one value orders before another."""
    if is_number(one) and is_number(two):
        return bool(one < two)
    ordered = isinstance(one, _ORDERED) or (isinstance(one, Opaque) and one.ordered)
    if type(one) is not type(two) or not ordered:
        raise CelError(NO_SUCH_OVERLOAD)
    return bool(one < two)
