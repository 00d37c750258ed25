"""Resource slices: defaults, validation, table.

Upstream: pkg/apis/resource, pkg/printers/internalversion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    too_many,
)
from podium.lab.kinds.device_class import (
    validate_attribute_name,
    validate_binding_conditions,
    validate_driver,
    validate_items,
    validate_label,
    validate_pool_name,
    validate_taint,
)
from podium.lab.kinds.field_checks import (
    validate_name,
    validate_node_selector,
    validate_unchanged,
)
from podium.lab.kinds.kind import KindStrategy, Printer
from podium.objects.field_errors import dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import nano

_MOST_DEVICES: Final = 128
#: The limit for slices with taints or counters.
_MOST_ADVANCED_DEVICES: Final = 64
_MOST_SETS: Final = 8
_MOST_CONSUMED_SETS: Final = 2
_MOST_COUNTERS: Final = 32
_MOST_FACTS: Final = 32
_MOST_TAINTS: Final = 16
_MOST_VALUE: Final = 64
_MOST_OPTIONS: Final = 10
_ONE_PLACE: Final = "exactly one of {} is required"
_SEVERAL: Final = ", but multiple fields are set"
_SLICE_PLACES: Final = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)
_PRE_RELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    rf"(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def set_slice_defaults(item: JsonObject) -> None:
    """Leave out attributes with several values, whose feature gate is off by default."""
    for device in (item.get("spec") or {}).get("devices") or ():
        device.pop("nodeAllocatableResourceMappings", None)
        for attribute in (device.get("attributes") or {}).values():
            for field in ("bools", "ints", "strings", "versions"):
                attribute.pop(field, None)


def validate_resource_slice(item: JsonObject) -> FieldErrors:
    """Validate the pool of a slice, the nodes it is for, its devices and counters."""
    spec = item.get("spec") or {}
    yield from validate_driver(spec.get("driver") or "", "spec.driver")
    yield from _validate_pool(spec.get("pool") or {}, "spec.pool")
    yield from _validate_place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    per_device = bool(spec.get("perDeviceNodeSelection"))
    devices = spec.get("devices") or ()
    advanced = any(each.get("taints") or each.get("consumesCounters") for each in devices)
    yield from validate_items(
        devices,
        "spec.devices",
        lambda each, at: _validate_device(each, at, per_device=per_device),
        most=_MOST_ADVANCED_DEVICES if advanced else _MOST_DEVICES,
        key=lambda each: each.get("name") or "",
    )
    yield from validate_items(
        spec.get("sharedCounters") or (),
        "spec.sharedCounters",
        lambda each, at: _validate_counters(each, at, "name"),
        most=_MOST_SETS,
        key=lambda each: each.get("name") or "",
    )


def validate_resource_slice_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a slice: driver, pool and node cannot change."""
    yield from validate_unchanged(item, old, "pool.name", "driver", "nodeName")


def _validate_pool(pool: JsonObject, path: str) -> FieldErrors:
    yield from validate_pool_name(pool.get("name") or "", f"{path}.name")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        yield invalid_value(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        what = "must be greater than or equal to zero"
        yield invalid_value(f"{path}.generation", generation, what)


def _validate_place(spec: JsonObject) -> FieldErrors:
    """Validate that the slice says in exactly one way which nodes can use its devices."""
    given = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name:
        given.append("`nodeName`")
        yield from _validate_node_name(name, "spec.nodeName")
    elif name is not None:
        what = "must be either unset or set to a non-empty string"
        yield invalid_value("spec.nodeName", name, what)
    if selector is not None:
        given.append("`nodeSelector`")
        yield from validate_node_selector(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            what = "must have exactly one node selector term"
            yield invalid_value("spec.nodeSelector.nodeSelectorTerms", terms, what)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif spec.get(field) is not None:
            yield invalid_value(f"spec.{field}", spec[field], "must be either unset or set to true")
    if not given:
        yield required("spec", _ONE_PLACE.format(_SLICE_PLACES))
    elif len(given) > 1:
        what = _ONE_PLACE.format(_SLICE_PLACES) + _SEVERAL
        yield invalid_value("spec", f"{{{', '.join(given)}}}", what)


def _validate_node_name(name: str, path: str) -> FieldErrors:
    yield from validate_name(name, path, dns_subdomain_reasons)


def _validate_device(device: JsonObject, path: str, *, per_device: bool) -> FieldErrors:
    yield from validate_label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MOST_FACTS:
        what = f"the total number of attributes and capacities must not exceed {_MOST_FACTS}"
        yield invalid_value(path, len(attributes) + len(capacity), what)
    yield from _validate_map(
        attributes, f"{path}.attributes", validate_attribute_name, _validate_attribute
    )
    shared = bool(device.get("allowMultipleAllocations"))
    yield from _validate_map(
        capacity,
        f"{path}.capacity",
        validate_attribute_name,
        lambda each, at: _validate_capacity(each, at, shared=shared),
    )
    yield from validate_items(
        device.get("taints") or (), f"{path}.taints", validate_taint, most=_MOST_TAINTS
    )
    yield from validate_items(
        device.get("consumesCounters") or (),
        f"{path}.consumesCounters",
        lambda each, at: _validate_counters(each, at, "counterSet"),
        most=_MOST_CONSUMED_SETS,
        key=lambda each: each.get("counterSet") or "",
    )
    yield from _validate_device_place(device, path, per_device=per_device)
    yield from validate_binding_conditions(device, path)


def _validate_device_place(device: JsonObject, path: str, *, per_device: bool) -> FieldErrors:
    places = ("nodeName", "nodeSelector", "allNodes")
    if not per_device:
        if any(device.get(field) is not None for field in places):
            yield invalid_value(path, None, _NO_DEVICE_PLACE)
        return
    given = [f"`{field}`" for field in places if device.get(field)]
    if device.get("nodeName"):
        yield from _validate_node_name(device["nodeName"], f"{path}.nodeName")
    elif device.get("nodeName") is not None:
        yield invalid_value(f"{path}.nodeName", "", "must not be empty")
    if device.get("nodeSelector") is not None:
        yield from validate_node_selector(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        yield invalid_value(
            f"{path}.allNodes", device["allNodes"], "must be either unset or set to true"
        )
    if not given:
        yield required(path, _DEVICE_PLACE)
    elif len(given) > 1:
        yield invalid_value(path, f"{{{', '.join(given)}}}", _DEVICE_PLACE)


def _validate_map(
    found: Mapping[str, Any],
    path: str,
    check_name: Callable[[str, str], Iterable[FieldError]],
    check: Callable[[Any, str], Iterable[FieldError]],
) -> FieldErrors:
    for name, each in found.items():
        yield from check_name(name, path)
        yield from check(each, f"{path}[{name}]")


def _validate_attribute(attribute: JsonObject, path: str) -> FieldErrors:
    given = [f for f in ("bool", "int", "string", "version") if attribute.get(f) is not None]
    for field in ("string", "version"):
        value = attribute.get(field)
        if value is None:
            continue
        if field == "version" and not _VERSION.fullmatch(value):
            what = "must be a string compatible with semver.org spec 2.0.0"
            yield invalid_value(f"{path}.version", value, what)
        if len(value) > _MOST_VALUE:
            yield too_long(f"{path}.{field}", "", _MOST_VALUE)
    if len(given) != 1:
        yield invalid_value(path, attribute if given else "", "exactly one value must be specified")


def _validate_capacity(capacity: JsonObject, path: str, *, shared: bool) -> FieldErrors:
    policy, here = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return
    if not shared:
        yield forbidden_field(here, "allowMultipleAllocations must be true")
        return
    values, span = policy.get("validValues") or [], policy.get("validRange")
    if values and span is not None:
        what = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" '
            "at the same time"
        )
        yield forbidden_field(here, what)
        return
    kind = "validValues" if values else "validRange"
    if not values and span is None:
        return
    if policy.get("default") is None:
        yield required(f"{here}.default", f"required when {kind} is defined")
    elif values:
        yield from _validate_options(values, policy["default"], capacity, f"{here}.validValues")
    else:
        assert span is not None
        yield from _validate_range(span, policy["default"], capacity, f"{here}.validRange")


def _validate_options(
    values: list[Any], default: Any, capacity: JsonObject, path: str
) -> FieldErrors:
    amounts, most = [nano(each) for each in values], nano(capacity.get("value", 0))
    for index, (one, two) in enumerate(pairwise(amounts), 1):
        if one > two:
            what = "values must be sorted in ascending order"
            yield invalid_value(f"{path}[{index}]", str(values[index]), what)

    def check(value: Any, at: str) -> FieldErrors:
        if nano(value) > most:
            what = f"option is larger than capacity value: {capacity.get('value', 0)}"
            yield invalid_value(at, str(value), what)

    yield from validate_items(values, path, check, most=_MOST_OPTIONS, key=str)
    if nano(default) not in amounts:
        what = "default value is not valid according to the requestPolicy"
        yield invalid_value(path, str(default), what)


def _validate_range(span: JsonObject, default: Any, capacity: JsonObject, path: str) -> FieldErrors:
    least, most, step = span.get("min"), span.get("max"), span.get("step")
    whole = capacity.get("value", 0)
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if nano(least) > nano(whole):
        what = f"min is larger than capacity value: {whole}"
        yield invalid_value(f"{path}.min", str(least), what)
    if nano(default) < nano(least):
        yield invalid_value(f"{path}.min", str(default), f"default is less than min: {least}")
    if most is not None:
        if nano(least) > nano(most):
            yield invalid_value(f"{path}.max", str(least), f"min is larger than max: {most}")
        if nano(most) > nano(whole):
            what = f"max is larger than capacity value: {whole}"
            yield invalid_value(f"{path}.max", str(most), what)
        if nano(default) > nano(most):
            yield invalid_value(f"{path}.max", str(default), f"default is more than max: {most}")
    if step is not None and nano(step):
        yield from _validate_step(span, default, capacity, f"{path}.step")


def _validate_step(span: JsonObject, default: Any, capacity: JsonObject, path: str) -> FieldErrors:
    least, most, step = span.get("min"), span.get("max"), span.get("step")
    whole = capacity.get("value", 0)
    if nano(least) + nano(step) > nano(whole):
        what = f"one step {step} is larger than capacity value: {whole}"
        yield invalid_value(path, str(step), what)
    for value in (default, most):
        if value is not None and (nano(value) - nano(least)) % nano(step):
            what = f"value is not a multiple of a given step ({step}) from ({least})"
            yield invalid_value(path, str(value), what)


def _validate_counters(holder: JsonObject, path: str, name_field: str) -> FieldErrors:
    """Validate a set of counters, or how much of one a device consumes."""
    if not holder.get(name_field):
        yield required(f"{path}.{name_field}")
    else:
        yield from validate_label(holder[name_field], f"{path}.{name_field}")
    counters, here = holder.get("counters") or {}, f"{path}.counters"
    if not counters:
        yield required(here)
    elif len(counters) > _MOST_COUNTERS:
        yield too_many(here, len(counters), _MOST_COUNTERS)
    else:
        for name in counters:
            yield from validate_label(name, here)


KINDS: Mapping[str, KindStrategy] = {
    "ResourceSlice": KindStrategy(
        set_defaults=set_slice_defaults,
        has_generation=True,
        validate=validate_resource_slice,
        validate_update=validate_resource_slice_update,
        table=Printer("Name, Node=spec.nodeName, Driver=spec.driver, Pool=spec.pool.name, Age"),
    ),
}
