"""Errors of single fields of an object, with the messages of Kubernetes.

    spec.containers[0].image: Required value
    metadata.name: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of …

Upstream: apimachinery/pkg/util/validation/field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """One invalid field: the reason, the path of the field, its value and a sentence."""

    reason: str
    field: str
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        """The path and the message."""
        return f"{self.field}: {self.message()}"

    def message(self) -> str:
        """The message without the path."""
        text = _WORDS[self.reason]
        if self.reason not in _VALUELESS:
            text = f"{text}: {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def cause(self) -> dict[str, str]:
        """The error as one of the causes in the details of a `Status`."""
        return {"reason": self.reason, "message": self.message(), "field": self.field}


#: What a validation function yields.
FieldErrors = Iterator[FieldError]


def _shown(value: Any) -> str:
    """A value as Go prints it in a field error."""
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
    """The field is missing and must be set."""
    return FieldError("FieldValueRequired", field, "", detail)


def invalid_value(field: str, value: Any, detail: str = "") -> FieldError:
    """The value is not allowed."""
    return FieldError("FieldValueInvalid", field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """The value occurs more than once."""
    return FieldError("FieldValueDuplicate", field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is not one of the *supported* ones."""
    listed = ", ".join(quoted(each) for each in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}")


def forbidden_field(field: str, detail: str = "") -> FieldError:
    """The field may not be set."""
    return FieldError("FieldValueForbidden", field, "", detail)


def missing_target(field: str, value: Any) -> FieldError:
    """The value names an object that does not exist."""
    return FieldError("FieldValueNotFound", field, value)


def too_many(field: str, count: int, most: int) -> FieldError:
    """The list or map has more items than *most*."""
    items = "item" if most == 1 else "items"
    return FieldError("FieldValueTooMany", field, count, f"must have at most {most} {items}")


def too_long(field: str, value: Any, most: int) -> FieldError:
    """The value has more bytes than *most*."""
    return FieldError("FieldValueTooLong", field, value, f"must have at most {most} bytes")
