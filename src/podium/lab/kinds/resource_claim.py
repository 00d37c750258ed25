"""Resource claims and their templates: defaults, validation, table.

Upstream: pkg/apis/resource, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from podium.lab.kinds.device_class import (
    EFFECTS,
    MOST_ITEMS,
    validate_binding_conditions,
    validate_class_name,
    validate_config,
    validate_driver,
    validate_fully_qualified_name,
    validate_items,
    validate_label,
    validate_pool_name,
    validate_raw,
    validate_selector,
    validate_share,
)
from podium.lab.kinds.field_checks import (
    IMMUTABLE,
    validate_labels,
    validate_name,
    validate_node_selector,
    validate_qualified_name,
)
from podium.lab.kinds.kind import KindStrategy, Printer, list_at, metadata_of, object_at
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import label_value_reasons

_OPERATORS: Final = ("Equal", "Exists")
_MODES: Final = ("All", "ExactCount")
_SOURCES: Final = ("FromClaim", "FromClass")
_MOST_ALTERNATIVES: Final = 8
_MOST_CONSUMERS: Final = 256
_MOST_CONDITIONS: Final = 8
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def set_resource_claim_defaults(item: JsonObject) -> None:
    """Set how many devices each request of a claim wants."""
    _set_request_defaults(item.get("spec") or {})


def set_claim_template_defaults(item: JsonObject) -> None:
    """Set the same in the claims that are made from a template."""
    _set_request_defaults((item.get("spec") or {}).get("spec") or {})


def _set_request_defaults(spec: JsonObject) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for each in _alternatives(request):
            mode = each.get("allocationMode") or "ExactCount"
            each["allocationMode"] = mode
            if mode == "ExactCount" and not each.get("count"):
                each["count"] = 1


def _alternatives(request: JsonObject) -> Iterator[JsonObject]:
    if request.get("exactly") is not None:
        yield request["exactly"]
    yield from request.get("firstAvailable") or ()


def drop_released_devices(status: JsonObject, before: JsonObject) -> None:
    """Remove what drivers reported of devices that are no longer allocated."""
    released = _allocated(before) - _allocated(status)
    kept = [each for each in status.get("devices") or () if _identity(each) not in released]
    if kept:
        status["devices"] = kept
    else:
        status.pop("devices", None)


def _allocated(status: JsonObject) -> set[str]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {_identity(each) for each in devices.get("results") or ()}


#: Names of requests with those of their alternatives.
_Requests = Mapping[str, Collection[str]]


# Claims
def validate_resource_claim(item: JsonObject) -> FieldErrors:
    """Validate the requests, constraints and parameters of a claim."""
    yield from _validate_spec(item.get("spec") or {}, "spec")


def validate_resource_claim_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a claim or a template: the spec cannot change."""
    if item.get("spec") != old.get("spec"):
        yield invalid_value("spec", item.get("spec"), IMMUTABLE)


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
    yield from validate_items(wanted.get("selectors") or (), f"{path}.selectors", validate_selector)
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


def _validate_toleration(toleration: JsonObject, path: str) -> FieldErrors:
    if toleration.get("key"):
        yield from validate_qualified_name(toleration["key"], f"{path}.key")
    operator, value = toleration.get("operator") or "", toleration.get("value") or ""
    if operator == "Exists":
        if value:
            yield invalid_value(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from validate_name(value, f"{path}.value", label_value_reasons)
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
    yield from validate_config(config, path)


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
    allocated = _allocated(status)
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
            yield invalid_value("status.allocation", allocation, IMMUTABLE)
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
        yield from validate_raw(device["data"], f"{path}.data")


def _validate_device_identity(device: JsonObject, path: str) -> FieldErrors:
    yield from validate_driver(device.get("driver") or "", f"{path}.driver")
    yield from validate_pool_name(device.get("pool") or "", f"{path}.pool")
    yield from validate_label(device.get("device") or "", f"{path}.device")
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
        most=2 * MOST_ITEMS,
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


def _claim_state(item: JsonObject, _now: float) -> str:
    deleted = "deletionTimestamp" in metadata_of(item)
    states = ["deleted"] if deleted else []
    if object_at(item, "status", "allocation"):
        states.append("allocated")
        if list_at(item, "status", "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


class ResourceClaimStrategy(KindStrategy):
    """How resource claims are completed and validated."""

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
        """The object to be stored; devices that are no longer allocated lose their status."""
        made = KindStrategy.prepare_for_update(self, item, old, subresource)
        if subresource == "status" and made.get("status"):
            drop_released_devices(made["status"], old.get("status") or {})
        return made

    def update_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in an object that replaces *old*: its spec is valid and cannot change."""
        return list(self.validate_update(item, old))


KINDS: Mapping[str, KindStrategy] = {
    "ResourceClaim": ResourceClaimStrategy(
        set_defaults=set_resource_claim_defaults,
        validate=validate_resource_claim,
        validate_update=validate_resource_claim_update,
        validate_status=validate_resource_claim_status,
        table=Printer("Name, State, Age", {"State": _claim_state}),
    ),
    "ResourceClaimTemplate": ResourceClaimStrategy(
        set_defaults=set_claim_template_defaults,
        validate=validate_claim_template,
        validate_update=validate_resource_claim_update,
        table=Printer("Name, Age"),
    ),
}
