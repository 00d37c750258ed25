"""Device classes and taint rules, and what all kinds about devices have in common.

Upstream: pkg/apis/resource, pkg/printers/internalversion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from podium.cel.environment import compile_expression
from podium.cel.errors import CompileError
from podium.errors import InputError
from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from podium.lab.kinds.field_checks import validate_name, validate_qualified_name
from podium.lab.kinds.kind import KindStrategy, Printer
from podium.objects.field_errors import dns_label_reasons, dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_extended, label_value_reasons

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
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
MOST_ITEMS: Final = 32
_MOST_BYTES: Final = 10 * 1024


def validate_label(name: str, path: str) -> FieldErrors:
    """Validate the name of a request, a device, a counter or a claim of a pod."""
    yield from validate_name(name, path, dns_label_reasons)


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
    else:
        yield from validate_name(name, path, dns_subdomain_reasons)


def validate_pool_name(name: str, path: str) -> FieldErrors:
    """Validate the name of a pool: one or more subdomains with slashes between them."""
    if not name:
        yield required(path)
        return
    if len(name) > _MOST_POOL:
        yield too_long(path, "", _MOST_POOL)
    for part in name.split("/"):
        yield from validate_name(part, path, dns_subdomain_reasons)


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


def set_taint_times(item: JsonObject, now: str) -> None:
    """Set when the taints of devices, or that of a rule, were added, where that is not given."""
    spec = item.get("spec") or {}
    if spec.get("taint"):
        spec["taint"].setdefault("timeAdded", now)
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


# Lists
def validate_items(
    items: Iterable[Any],
    path: str,
    check: Callable[[Any, str], Iterable[FieldError]],
    *,
    most: int = MOST_ITEMS,
    key: Callable[[Any], Any] | None = None,
) -> FieldErrors:
    """Validate the items of a list of limited length; *key* must differ from item to item."""
    listed = list(items)
    if len(listed) > most:
        yield too_many(path, len(listed), most)
        return
    for index, each in enumerate(listed):
        yield from check(each, f"{path}[{index}]")
    if key is None:
        return
    seen = set()
    for index, each in enumerate(listed):
        found = key(each)
        if found in seen:
            yield duplicate(f"{path}[{index}]", found)
        seen.add(found)


def validate_selector(selector: JsonObject, path: str) -> FieldErrors:
    """Validate a selector of devices."""
    cel = selector.get("cel")
    if cel is None:
        yield required(f"{path}.cel")
        return
    here, text = f"{path}.cel.expression", cel.get("expression") or ""
    if len(text.encode()) > _MOST_BYTES:
        yield too_long(here, "", _MOST_BYTES)
        return
    try:
        found = compile_expression(text)
    except InputError as error:
        yield invalid_value(here, text, str(error))
        return
    if isinstance(found, CompileError):
        yield invalid_value(here, text, str(found))


def validate_config(config: JsonObject, path: str) -> FieldErrors:
    """Validate the configuration of a driver."""
    opaque, here = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield required(here)
        return
    yield from validate_driver(opaque.get("driver") or "", f"{here}.driver")
    yield from validate_raw(opaque.get("parameters"), f"{here}.parameters")


def validate_raw(value: Any, path: str) -> FieldErrors:
    """Validate the parameters of a driver: an object within a size."""
    if value is None:
        yield required(path)
    elif len(msgspec.json.encode(value)) > _MOST_BYTES:
        yield too_long(path, "", _MOST_BYTES)
    elif not isinstance(value, dict):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


def validate_taint(taint: JsonObject, path: str) -> FieldErrors:
    """Validate the taint of a device."""
    yield from validate_qualified_name(taint.get("key") or "", f"{path}.key")
    value, effect = taint.get("value") or "", taint.get("effect") or ""
    for reason in label_value_reasons(value) if value else ():
        yield invalid_value(f"{path}.value", value, reason)
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in EFFECTS:
        yield not_supported(f"{path}.effect", effect, EFFECTS)


# Classes
def validate_device_class(item: JsonObject) -> FieldErrors:
    """Validate the selectors, parameters and the extended resource of a class."""
    spec = item.get("spec") or {}
    yield from validate_items(spec.get("selectors") or (), "spec.selectors", validate_selector)
    yield from validate_items(spec.get("config") or (), "spec.config", validate_config)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        what = "must be a valid extended resource name"
        yield invalid_value("spec.extendedResourceName", name, what)


def validate_device_taint_rule(item: JsonObject) -> FieldErrors:
    """Validate the selector of a taint rule and its taint."""
    spec = item.get("spec") or {}
    selector, path = spec.get("deviceSelector") or {}, "spec.deviceSelector"
    if "driver" in selector:
        yield from validate_driver(selector["driver"], f"{path}.driver")
    if "pool" in selector:
        yield from validate_pool_name(selector["pool"], f"{path}.pool")
    if "device" in selector:
        yield from validate_label(selector["device"], f"{path}.device")
    yield from validate_taint(spec.get("taint") or {}, "spec.taint")


KINDS: Mapping[str, KindStrategy] = {
    "DeviceClass": KindStrategy(
        has_generation=True,
        validate=validate_device_class,
        table=Printer("Name, Age"),
    ),
    "DeviceTaintRule": KindStrategy(
        has_generation=True,
        validate=validate_device_taint_rule,
        table=Printer("Name, Age"),
    ),
}
