"""What is refused in amounts of resources.

Upstream: pkg/apis/core/validation (ValidateResourceRequirements, ValidateResourceQuantityValue).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from podium.lab.api.field_errors import FieldError, invalid_value, required
from podium.lab.api.status import JsonDict
from podium.objects.kinds.meta import RawQuantity
from podium.objects.names import is_qualified_name, label_key_reasons
from podium.objects.quantity import QuantityError, nano

Problems = Iterator[FieldError]

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_KNOWN = _STANDARD | {"storage", "pods"}
_NATIVE = "kubernetes.io/"


def amount(quantity: RawQuantity, path: str) -> Problems:
    """Zero or more."""
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
    """Whether it is more than nothing."""
    return (_nano(quantity) or 0) > 0


def resources(found: JsonDict, path: str) -> Problems:
    """The requests and limits of a container."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, quantity in limits.items():
        yield from _resource(name, quantity, f"{path}.limits[{name}]")
    for name, quantity in requests.items():
        yield from _resource(name, quantity, f"{path}.requests[{name}]")
        if name in limits:
            asked, most = _nano(quantity), _nano(limits[name])
            if asked is None or most is None:
                continue
            if asked != most and not _can_differ(name):
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
        elif not _can_differ(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _resource(name: str, quantity: RawQuantity, path: str) -> Problems:
    if name not in _STANDARD:
        if not is_qualified_name(name):
            for reason in label_key_reasons(name):
                yield invalid_value(path, name, reason)
        if "/" not in name and not name.startswith("hugepages-"):
            if name not in _KNOWN:
                yield invalid_value(
                    path, name, "must be a standard resource type or fully qualified"
                )
            yield invalid_value(path, name, "must be a standard resource for containers")
    yield from amount(quantity, path)
    value = _nano(quantity)
    if value is not None and value % 10**9 and not _can_be_split(name):
        yield invalid_value(path, str(quantity), "must be an integer")


def _can_differ(name: str) -> bool:
    """Whether more may be used than was asked for: true of what Kubernetes itself knows."""
    native = "/" not in name or _NATIVE in name
    return native and not name.startswith("hugepages-")


def _can_be_split(name: str) -> bool:
    return name in _KNOWN or name.startswith("hugepages-") or _NATIVE in name
