"""Names of drivers, pools, devices and attributes, and the conditions of binding.

Upstream: pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from podium.lab.api.field_errors import (
    FieldErrors,
    duplicate,
    invalid_value,
    required,
    too_long,
    too_many,
)
from podium.lab.validation.names import dns_label_reasons, dns_subdomain_reasons
from podium.lab.validation.selectors import validate_qualified_name
from podium.objects.kinds.meta import JsonObject

_MOST_DRIVER: Final = 63
_MOST_POOL: Final = 253
_MOST_IDENTIFIER: Final = 32
_MOST_CONDITIONS: Final = 4
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_NO_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    f"validation is '{_IDENTIFIER}')"
)
_NORMAL_FORM: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
    "lowercase hexadecimal characters"
)


def validate_label(name: str, path: str) -> FieldErrors:
    """Validate the name of a request, a device, a counter or a claim of a pod."""
    for reason in dns_label_reasons(name):
        yield invalid_value(path, name, reason)


validate_device_name = validate_label


def validate_driver(name: str, path: str) -> FieldErrors:
    """Validate the name of a driver."""
    if not name:
        yield required(path)
        return
    if len(name) > _MOST_DRIVER:
        yield too_long(path, "", _MOST_DRIVER)
    for reason in dns_subdomain_reasons(name.lower()):
        yield invalid_value(path, name, reason)


def validate_class_name(name: str, path: str) -> FieldErrors:
    """Validate the name of a device class."""
    if not name:
        yield required(path)
        return
    for reason in dns_subdomain_reasons(name):
        yield invalid_value(path, name, reason)


def validate_pool_name(name: str, path: str) -> FieldErrors:
    """Validate the name of a pool: one or more subdomains with slashes between them."""
    if not name:
        yield required(path)
        return
    if len(name) > _MOST_POOL:
        yield too_long(path, "", _MOST_POOL)
    for part in name.split("/"):
        for reason in dns_subdomain_reasons(part):
            yield invalid_value(path, part, reason)


def validate_share(uid: str | None, path: str) -> FieldErrors:
    """Validate the identity of a share of a device."""
    if uid is None:
        return
    try:
        UUID(uid)
    except ValueError:
        what = f"error validating uid: invalid UUID length: {len(uid)}"
        yield invalid_value(path, uid, what)
        return
    if uid != str(UUID(uid)):
        yield invalid_value(path, uid, _NORMAL_FORM)


def validate_attribute_name(name: str, path: str) -> FieldErrors:
    """Validate the name of an attribute or a capacity, with or without a domain."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _validate_identifier(name, path)
    elif len(parts) == 2:
        domain, identifier = parts
        if domain:
            yield from validate_driver(domain, path)
        else:
            yield invalid_value(path, "", "the domain must not be empty")
        if identifier:
            yield from _validate_identifier(identifier, path)
        else:
            yield invalid_value(path, "", "the name must not be empty")


def validate_fully_qualified_name(name: str, path: str) -> FieldErrors:
    """Validate the name of an attribute, which needs a domain."""
    yield from validate_attribute_name(name, path)
    if "/" not in name:
        what = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid_value(path, name, what)


def _validate_identifier(name: str, path: str) -> FieldErrors:
    if len(name) > _MOST_IDENTIFIER:
        yield too_long(path, "", _MOST_IDENTIFIER)
    if not re.fullmatch(_IDENTIFIER, name):
        yield invalid_value(path, name, _NO_IDENTIFIER)


def validate_binding_conditions(device: JsonObject, path: str) -> FieldErrors:
    """Validate the conditions that a device must have, or must not, before pods are bound."""
    wanted = device.get("bindingConditions") or []
    failures = device.get("bindingFailureConditions") or []
    yield from _validate_conditions(wanted, f"{path}.bindingConditions")
    yield from _validate_conditions(failures, f"{path}.bindingFailureConditions")
    for index, name in enumerate(failures):
        if name in wanted:
            what = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid_value(f"{path}.bindingFailureConditions[{index}]", name, what)
    if failures and not wanted:
        what = "bindingConditions are required to use bindingFailureConditions"
        yield invalid_value(f"{path}.bindingConditions", wanted, what)
    if wanted and not failures:
        what = "bindingFailureConditions are required to use bindingConditions"
        yield invalid_value(f"{path}.bindingFailureConditions", failures, what)


def _validate_conditions(names: list[str], path: str) -> FieldErrors:
    if len(names) > _MOST_CONDITIONS:
        yield too_many(path, len(names), _MOST_CONDITIONS)
        return
    for index, name in enumerate(names):
        yield from validate_qualified_name(name, f"{path}[{index}]")
        if name in names[:index]:
            yield duplicate(f"{path}[{index}]", name)
