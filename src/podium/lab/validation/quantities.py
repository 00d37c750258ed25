"""Validation of quantities, and of the requests and limits of containers.

Upstream: pkg/apis/core/validation (ValidateResourceRequirements, ValidateResourceQuantityValue).
"""

from __future__ import annotations

from functools import lru_cache

from podium.lab.api.field_errors import FieldErrors, invalid_value, required
from podium.objects.kinds.meta import JsonObject, RawQuantity
from podium.objects.names import is_qualified_name, label_key_reasons
from podium.objects.quantity import QuantityError, nano

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | {"storage", "pods"}
_NATIVE_DOMAIN = "kubernetes.io/"


def validate_quantity(quantity: RawQuantity, path: str) -> FieldErrors:
    """Validate a quantity, which must not be negative."""
    value = _nano(quantity)
    if value is None:
        yield invalid_value(path, str(quantity), "must be a quantity")
    elif value < 0:
        yield invalid_value(path, str(quantity), "must be greater than or equal to 0")


@lru_cache(maxsize=1 << 14)
def _nano(quantity: RawQuantity) -> int | None:
    try:
        return nano(quantity)
    except QuantityError:
        return None


def is_positive(quantity: RawQuantity) -> bool:
    """Whether a quantity can be read and is greater than zero."""
    return (_nano(quantity) or 0) > 0


def validate_resources(found: JsonObject, path: str) -> FieldErrors:
    """Validate the requests and limits of a container."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, quantity in limits.items():
        yield from _validate_resource(name, quantity, f"{path}.limits[{name}]")
    for name, quantity in requests.items():
        yield from _validate_resource(name, quantity, f"{path}.requests[{name}]")
        if name in limits:
            asked, most = _nano(quantity), _nano(limits[name])
            if asked is None or most is None:
                continue
            if asked != most and not _can_be_overcommitted(name):
                yield invalid_value(
                    f"{path}.requests",
                    str(quantity),
                    f"must be equal to {name} limit of {limits[name]}",
                )
            elif asked > most:
                yield invalid_value(
                    f"{path}.requests",
                    str(quantity),
                    f"must be less than or equal to {name} limit",
                )
        elif not _can_be_overcommitted(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _validate_resource(name: str, quantity: RawQuantity, path: str) -> FieldErrors:
    if name not in _CONTAINER_RESOURCES:
        if not is_qualified_name(name):
            for reason in label_key_reasons(name):
                yield invalid_value(path, name, reason)
        if "/" not in name and not name.startswith("hugepages-"):
            if name not in _STANDARD_RESOURCES:
                yield invalid_value(
                    path, name, "must be a standard resource type or fully qualified"
                )
            yield invalid_value(path, name, "must be a standard resource for containers")
    yield from validate_quantity(quantity, path)
    value = _nano(quantity)
    if value is not None and value % 10**9 and not _is_divisible(name):
        yield invalid_value(path, str(quantity), "must be an integer")


def _can_be_overcommitted(name: str) -> bool:
    """Whether the limit may exceed the request: native resources except huge pages."""
    native = "/" not in name or _NATIVE_DOMAIN in name
    return native and not name.startswith("hugepages-")


def _is_divisible(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-") or _NATIVE_DOMAIN in name
