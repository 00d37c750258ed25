"""The atoms of selectors: one requirement on one label or field, and their conjunctions.

Upstream: apimachinery/pkg/labels and pkg/fields, Kubernetes v1.13.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
    quoted,
)

#: What an operator is called once a requirement is built: equality is membership in one value.
_CANONICAL = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    "In": "In",
    "NotIn": "NotIn",
    "Exists": "Exists",
    "DoesNotExist": "DoesNotExist",
    "Gt": "Gt",
    "Lt": "Lt",
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64_DIGITS = 4000  # longer ones cannot be read; leading zeros are legal


class SelectorError(ValueError):
    """A selector cannot be built; the text is the one kube-scheduler gives."""


@lru_cache(maxsize=1 << 14)
def int64(text: str) -> int | None:
    """*text* as a base-10 64-bit integer, or `None`; stricter than `int()`."""
    if len(text) > _INT64_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class Requirement(msgspec.Struct, frozen=True):
    """One condition on the value of one label. Build it with `requirement()`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool:
        """Whether the label's *value* (`None`: absent) satisfies the condition."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return value is not None and self._compares(value)

    def __str__(self) -> str:
        """The condition as `kubectl --selector` takes it."""
        first = self.values[0] if self.values else ""
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{first}"
            case "In" if len(self.values) == 1:
                return f"{self.key}={first}"
            case "NotIn" if len(self.values) == 1:
                return f"{self.key}!={first}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"

    def _compares(self, value: str) -> bool:
        number, bound = int64(value), int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


def requirement(key: str, operator: str, values: Sequence[str] | None) -> Requirement:
    """A valid requirement, or the first reason why there is none: key, operator, then values."""
    if not is_qualified_name(key):
        raise SelectorError(f"invalid label key {quoted(key)}: {'; '.join(label_key_reasons(key))}")
    values = tuple(values or ())
    _check_count(operator, values)
    for value in values:
        if not is_label_value(value):
            reasons = "; ".join(label_value_reasons(value))
            raise SelectorError(f"invalid label value: {quoted(value)}: {reasons}")
    return Requirement(key, _CANONICAL[operator], values)


def _check_count(operator: str, values: tuple[str, ...]) -> None:
    match operator:
        case "In" | "NotIn":
            wrong = not values
            text = "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=":
            wrong = len(values) != 1
            text = "exact-match compatibility requires one single value"
        case "Exists" | "DoesNotExist":
            wrong = bool(values)
            text = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt" if len(values) != 1:
            wrong, text = True, "for 'Gt', 'Lt' operators, exactly one value is required"
        case "Gt" | "Lt":
            wrong = int64(values[0]) is None
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
        case _:
            wrong, text = True, f"operator '{operator}' is not recognized"
    if wrong:
        raise SelectorError(text)


class Selector(msgspec.Struct, frozen=True):
    """Requirements, ANDed: none of them accept every object, unless it selects `nothing`."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these *labels* is selected."""
        if self.nothing:
            return False
        for wanted in self.requirements:  # noqa: SIM110  a generator costs more than the loop
            if not wanted.accepts(labels.get(wanted.key)):
                return False
        return True

    def add(self, *requirements: Requirement) -> Selector:
        """The selector with further requirements; one that selects nothing stays as it is."""
        return self if self.nothing else conjunction((*self.requirements, *requirements))

    def __str__(self) -> str:
        """The selector as `kubectl --selector` takes it; empty if it selects all, or nothing."""
        return ",".join(map(str, self.requirements))

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.nothing and not self.requirements


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def conjunction(requirements: Sequence[Requirement]) -> Selector:
    """All *requirements*, ordered by key so that equal selectors are equal values."""
    return Selector(tuple(sorted(requirements, key=lambda wanted: wanted.key)))


class FieldRequirement(msgspec.Struct, frozen=True):
    """One field that must, or must not, equal a value."""

    field: str
    equal: bool
    value: str

    def accepts(self, value: str) -> bool:
        """Whether the field's *value* satisfies the condition."""
        return (value == self.value) is self.equal


class FieldSelector(msgspec.Struct, frozen=True):
    """Field requirements, ANDed. An unknown field reads as the empty string."""

    requirements: tuple[FieldRequirement, ...] = ()
    nothing: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these *fields* is selected."""
        if self.nothing:
            return False
        return all(wanted.accepts(fields.get(wanted.field, "")) for wanted in self.requirements)
