"""What is wrong with one field of an object, in Kubernetes' words.

    spec.containers[0].image: Required value
    metadata.name: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of …

Upstream: apimachinery/pkg/util/validation/field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.objects.names import quoted

_WORDS = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
}
_VALUELESS = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field's path, what kind of mistake it is, the value found there and why that is wrong."""

    reason: str
    field: str
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        """The path and the sentence."""
        return f"{self.field}: {self.words()}"

    def words(self) -> str:
        """The sentence without the path."""
        text = _WORDS[self.reason]
        if self.reason not in _VALUELESS:
            text = f"{text}: {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def cause(self) -> dict[str, str]:
        """As a cause among the details of a `Status`."""
        return {"reason": self.reason, "message": self.words(), "field": self.field}


def _shown(value: Any) -> str:
    """A value as Go prints it in such a sentence."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        if not value:
            return "map[string]string(nil)"
        pairs = ", ".join(f"{quoted(key)}:{quoted(value[key])}" for key in sorted(value))
        return f"map[string]string{{{pairs}}}"
    return msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> FieldError:
    """Something must be there."""
    return FieldError("FieldValueRequired", field, "", detail)


def invalid_value(field: str, value: Any, detail: str = "") -> FieldError:
    """The value cannot be used."""
    return FieldError("FieldValueInvalid", field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """The value is there twice."""
    return FieldError("FieldValueDuplicate", field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is none of those that exist."""
    listed = ", ".join(quoted(each) for each in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}")


def forbidden_field(field: str, detail: str = "") -> FieldError:
    """The field may not be set, or not in this way."""
    return FieldError("FieldValueForbidden", field, "", detail)


def missing_target(field: str, value: Any) -> FieldError:
    """The value names something that does not exist."""
    return FieldError("FieldValueNotFound", field, value)


def too_long(field: str, value: Any, most: int) -> FieldError:
    """More bytes than allowed."""
    return FieldError("FieldValueTooLong", field, value, f"must have at most {most} bytes")
