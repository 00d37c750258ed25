"""Validation of resource claims, their templates and device classes, and of claims of pods.

Upstream: pkg/apis/resource/validation, pkg/apis/core/validation (validatePodResourceClaims).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from podium.engine.rules.devices.cel.errors import CompileError
from podium.errors import InputError
from podium.lab.api.field_errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from podium.lab.validation.device_names import (
    validate_binding_conditions,
    validate_class_name,
    validate_device_name,
    validate_driver,
    validate_fully_qualified_name,
    validate_label,
    validate_pool_name,
    validate_share,
)
from podium.lab.validation.metadata import validate_labels
from podium.lab.validation.names import dns_subdomain_reasons
from podium.lab.validation.selectors import validate_node_selector, validate_qualified_name
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import label_value_reasons
from podium.objects.resource_names import is_extended

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_OPERATORS: Final = ("Equal", "Exists")
_MODES: Final = ("All", "ExactCount")
_SOURCES: Final = ("FromClaim", "FromClass")
_MOST: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MOST_CONSUMERS: Final = 256
_MOST_CONDITIONS: Final = 8
_MOST_BYTES: Final = 10 * 1024
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_IMMUTABLE: Final = "field is immutable"

#: Names of requests with those of their alternatives.
_Requests = Mapping[str, Collection[str]]


# Lists
def validate_items(
    items: Iterable[Any],
    path: str,
    check: Callable[[Any, str], Iterable[FieldError]],
    *,
    most: int = _MOST,
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


# Claims
def validate_resource_claim(item: JsonObject) -> FieldErrors:
    """Validate the requests, constraints and parameters of a claim."""
    yield from _validate_spec(item.get("spec") or {}, "spec")


def validate_resource_claim_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a claim or a template: the spec cannot change."""
    if item.get("spec") != old.get("spec"):
        yield invalid_value("spec", item.get("spec"), _IMMUTABLE)


def validate_claim_template(item: JsonObject) -> FieldErrors:
    """Validate the claims that are made from a template."""
    spec = item.get("spec") or {}
    metadata = spec.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, "spec.metadata.labels")
    yield from _validate_spec(spec.get("spec") or {}, "spec.spec")


def _validate_spec(spec: JsonObject, path: str) -> FieldErrors:
    devices, here = spec.get("devices") or {}, f"{path}.devices"
    names = _request_names(spec)
    requests = devices.get("requests") or ()
    yield from validate_items(
        requests, f"{here}.requests", _validate_request, key=lambda each: each.get("name") or ""
    )
    yield from validate_items(
        devices.get("constraints") or (),
        f"{here}.constraints",
        lambda each, at: _validate_constraint(each, at, names),
    )
    yield from validate_items(
        devices.get("config") or (),
        f"{here}.config",
        lambda each, at: _validate_claim_config(each, at, names),
    )


def _request_names(spec: JsonObject) -> _Requests:
    return {
        each.get("name") or "": [one.get("name") or "" for one in each.get("firstAvailable") or ()]
        for each in (spec.get("devices") or {}).get("requests") or ()
    }


def _validate_request(request: JsonObject, path: str) -> FieldErrors:
    yield from validate_label(request.get("name") or "", f"{path}.name")
    alternatives, exactly = request.get("firstAvailable") or (), request.get("exactly")
    if alternatives and exactly is not None:
        yield invalid_value(
            path,
            None,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )
    elif alternatives:
        yield from validate_items(
            alternatives,
            f"{path}.firstAvailable",
            _validate_alternative,
            most=_MOST_ALTERNATIVES,
            key=lambda each: each.get("name") or "",
        )
    elif exactly is not None:
        yield from _validate_wanted(exactly, f"{path}.exactly")
    else:
        yield required(path, "exactly one of `exactly` or `firstAvailable` is required")


def _validate_alternative(alternative: JsonObject, path: str) -> FieldErrors:
    yield from validate_label(alternative.get("name") or "", f"{path}.name")
    yield from _validate_wanted(alternative, path)


def _validate_wanted(wanted: JsonObject, path: str) -> FieldErrors:
    yield from validate_class_name(wanted.get("deviceClassName") or "", f"{path}.deviceClassName")
    yield from validate_items(
        wanted.get("selectors") or (), f"{path}.selectors", _validate_selector
    )
    mode, count = wanted.get("allocationMode") or "", wanted.get("count") or 0
    if mode == "All" and count:
        what = "must not be specified when allocationMode is 'All'"
        yield invalid_value(f"{path}.count", count, what)
    elif mode == "ExactCount" and count <= 0:
        yield invalid_value(f"{path}.count", count, "must be greater than zero")
    elif mode not in _MODES:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)
    for index, each in enumerate(wanted.get("tolerations") or ()):
        yield from _validate_toleration(each, f"{path}.tolerations[{index}]")


def _validate_selector(selector: JsonObject, path: str) -> FieldErrors:
    cel = selector.get("cel")
    if cel is None:
        yield required(f"{path}.cel")
        return
    here, text = f"{path}.cel.expression", cel.get("expression") or ""
    if len(text.encode()) > _MOST_BYTES:
        yield too_long(here, "", _MOST_BYTES)
        return
    # The CEL library is loaded with the first selector, if there is one.
    from podium.engine.rules.devices.cel.environment import compile_expression  # noqa: PLC0415

    try:
        found = compile_expression(text)
    except InputError as error:
        yield invalid_value(here, text, str(error))
        return
    if isinstance(found, CompileError):
        yield invalid_value(here, text, str(found))


def _validate_toleration(toleration: JsonObject, path: str) -> FieldErrors:
    if toleration.get("key"):
        yield from validate_qualified_name(toleration["key"], f"{path}.key")
    operator, value = toleration.get("operator") or "", toleration.get("value") or ""
    if operator == "Exists":
        if value:
            yield invalid_value(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        for reason in label_value_reasons(value):
            yield invalid_value(f"{path}.value", value, reason)
    elif not operator:
        yield required(f"{path}.operator")
    else:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    effect = toleration.get("effect")
    if effect and effect not in EFFECTS:
        yield not_supported(f"{path}.effect", effect, EFFECTS)


def _validate_constraint(constraint: JsonObject, path: str, names: _Requests) -> FieldErrors:
    yield from _validate_references(constraint, path, names)
    for field in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(field)
        if name is not None:
            yield from validate_fully_qualified_name(name, f"{path}.{field}")
            return
    # The words of the real API server, although it is none that is set here.
    yield required(
        path,
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields '
        "are set",
    )


def _validate_references(holder: JsonObject, path: str, names: _Requests) -> FieldErrors:
    """Validate the names of requests that a constraint or parameters are for."""
    yield from validate_items(
        holder.get("requests") or (),
        f"{path}.requests",
        lambda each, at: _validate_reference(each, at, names),
        key=lambda each: each,
    )


def _validate_reference(name: str, path: str, names: _Requests) -> FieldErrors:
    segments = name.split("/")
    if len(segments) > 2:
        yield invalid_value(path, name, _NOT_A_REQUEST)
        return
    for each in segments:
        yield from validate_label(each, path)
    if segments[0] not in names or (len(segments) > 1 and segments[1] not in names[segments[0]]):
        yield invalid_value(path, name, _NOT_A_REQUEST)


def _validate_claim_config(config: JsonObject, path: str, names: _Requests) -> FieldErrors:
    yield from _validate_references(config, path, names)
    yield from _validate_config(config, path)


def _validate_config(config: JsonObject, path: str) -> FieldErrors:
    opaque, here = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield required(here)
        return
    yield from validate_driver(opaque.get("driver") or "", f"{here}.driver")
    yield from _validate_raw(opaque.get("parameters"), f"{here}.parameters")


def _validate_raw(value: Any, path: str) -> FieldErrors:
    if value is None:
        yield required(path)
    elif len(msgspec.json.encode(value)) > _MOST_BYTES:
        yield too_long(path, "", _MOST_BYTES)
    elif not isinstance(value, dict):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


# Status of claims
def validate_resource_claim_status(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate a new status: allocations never change, only allocated claims are reserved."""
    status, before = item.get("status") or {}, old.get("status") or {}
    allocation, consumers = status.get("allocation"), status.get("reservedFor") or []
    yield from validate_items(
        consumers,
        "status.reservedFor",
        _validate_consumer,
        most=_MOST_CONSUMERS,
        key=lambda each: each.get("uid") or "",
    )
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    allocated = {_identity(each) for each in results}
    yield from validate_items(
        status.get("devices") or (),
        "status.devices",
        lambda each, at: _validate_device_status(each, at, allocated),
        most=1 << 30,
        key=_identity,
    )
    yield from _validate_reservations(item, consumers, before)
    if allocation is not None and before.get("allocation") is not None:
        if allocation != before["allocation"]:
            yield invalid_value("status.allocation", allocation, _IMMUTABLE)
    elif allocation is not None:
        names = _request_names(item.get("spec") or {})
        yield from _validate_allocation(allocation, "status.allocation", names)


def _validate_reservations(
    item: JsonObject, consumers: list[JsonObject], before: JsonObject
) -> FieldErrors:
    if not consumers:
        return
    if (item.get("status") or {}).get("allocation") is None:
        what = "may not be specified when `allocated` is not set"
        yield forbidden_field("status.reservedFor", what)
    elif "deletionTimestamp" in item["metadata"]:
        known = before.get("reservedFor") or []
        if any(each not in known for each in consumers):
            yield forbidden_field(
                "status.reservedFor",
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set",
            )


def _validate_consumer(consumer: JsonObject, path: str) -> FieldErrors:
    for field in ("resource", "name", "uid"):
        if not consumer.get(field):
            yield required(f"{path}.{field}")


def _identity(device: JsonObject) -> str:
    """Driver, pool and device, and the share of a device that is shared."""
    parts = [device.get(field) or "" for field in ("driver", "pool", "device", "shareID")]
    return "/".join(part for part in parts if part)


def _validate_device_status(device: JsonObject, path: str, allocated: set[str]) -> FieldErrors:
    yield from _validate_device_identity(device, path)
    identity = _identity(device)
    if identity not in allocated:
        yield invalid_value(path, identity, "must be an allocated device in the claim")
    conditions = device.get("conditions") or ()
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS)
    if device.get("data") is not None:
        yield from _validate_raw(device["data"], f"{path}.data")


def _validate_device_identity(device: JsonObject, path: str) -> FieldErrors:
    yield from validate_driver(device.get("driver") or "", f"{path}.driver")
    yield from validate_pool_name(device.get("pool") or "", f"{path}.pool")
    yield from validate_device_name(device.get("device") or "", f"{path}.device")
    yield from validate_share(device.get("shareID"), f"{path}.shareID")


def _validate_allocation(allocation: JsonObject, path: str, names: _Requests) -> FieldErrors:
    devices, here = allocation.get("devices") or {}, f"{path}.devices"
    yield from validate_items(
        devices.get("results") or (),
        f"{here}.results",
        lambda each, at: _validate_result(each, at, names),
    )
    yield from validate_items(
        devices.get("config") or (),
        f"{here}.config",
        lambda each, at: _validate_allocated_config(each, at, names),
        most=2 * _MOST,
    )
    if allocation.get("nodeSelector") is not None:
        yield from validate_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")


def _validate_result(result: JsonObject, path: str, names: _Requests) -> FieldErrors:
    yield from _validate_reference(result.get("request") or "", f"{path}.request", names)
    yield from _validate_device_identity(result, path)
    yield from validate_binding_conditions(result, path)


def _validate_allocated_config(config: JsonObject, path: str, names: _Requests) -> FieldErrors:
    source = config.get("source") or ""
    if not source:
        yield required(f"{path}.source")
    elif source not in _SOURCES:
        yield not_supported(f"{path}.source", source, _SOURCES)
    yield from _validate_claim_config(config, path, names)


# Classes
def validate_device_class(item: JsonObject) -> FieldErrors:
    """Validate the selectors, parameters and the extended resource of a class."""
    spec = item.get("spec") or {}
    yield from validate_items(spec.get("selectors") or (), "spec.selectors", _validate_selector)
    yield from validate_items(spec.get("config") or (), "spec.config", _validate_config)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        what = "must be a valid extended resource name"
        yield invalid_value("spec.extendedResourceName", name, what)


# Pods
def validate_pod_claims(spec: JsonObject, path: str) -> FieldErrors:
    """Validate the claims of a pod, and the names by which its containers use them."""
    names: set[str] = set()
    for index, each in enumerate(spec.get("resourceClaims") or ()):
        yield from _validate_pod_claim(each, f"{path}.resourceClaims[{index}]", names)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            used = (container.get("resources") or {}).get("claims") or ()
            here = f"{path}.{field}[{index}].resources.claims"
            yield from _validate_used_claims(used, here, names)


def _validate_pod_claim(claim: JsonObject, path: str, names: set[str]) -> FieldErrors:
    name = claim.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif name in names:
        yield duplicate(f"{path}.name", name)
    else:
        yield from validate_label(name, f"{path}.name")
        names.add(name)
    given = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if f in claim]
    if len(given) > 1:
        what = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid_value(path, claim, what)
    elif not given:
        what = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid_value(path, claim, what)
    for field in given:
        for reason in dns_subdomain_reasons(claim[field]):
            yield invalid_value(f"{path}.{field}", claim[field], reason)


def _validate_used_claims(used: Iterable[JsonObject], path: str, names: set[str]) -> FieldErrors:
    seen: set[str] = set()
    for index, each in enumerate(used):
        here, name, request = f"{path}[{index}]", each.get("name") or "", each.get("request") or ""
        if not name:
            yield required(here)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            yield duplicate(here, name)
        else:
            if request:
                yield from validate_label(request, f"{here}.request")
            if key in seen:
                yield duplicate(here, key)
            elif not request and any(known.partition("/")[0] == name for known in seen):
                yield duplicate(here, name)
            seen.add(key)
        if name not in names:
            listed = f": {', '.join(sorted(names))}" if names else " which is empty"
            what = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield FieldError("FieldValueNotFound", here, name, what)
