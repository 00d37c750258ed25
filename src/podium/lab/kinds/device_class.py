"""Device classes and device taint rules: defaults, validation, table.

Upstream: pkg/apis/resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.field_errors import FieldErrors, invalid_value
from podium.lab.kinds.device_fields import (
    name_and_age,
    validate_config,
    validate_driver,
    validate_items,
    validate_label,
    validate_pool_name,
    validate_selector,
)
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.printer import Printer
from podium.lab.kinds.resource_slice import validate_taint
from podium.objects.kinds.meta import JsonObject
from podium.objects.resource_names import is_extended


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
        table=Printer("Name, Age", name_and_age),
    ),
    "DeviceTaintRule": KindStrategy(
        has_generation=True,
        validate=validate_device_taint_rule,
        table=Printer("Name, Age", name_and_age),
    ),
}
