"""Validation of nodes, services, disruption budgets, priority classes, leases, events and data.

Upstream: pkg/apis/core/validation, pkg/apis/storage/validation, pkg/apis/policy/validation,
pkg/apis/scheduling/validation, pkg/apis/coordination/validation.
"""

from __future__ import annotations

import ipaddress

from podium.lab.api.field_errors import (
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.validation.containers import PROTOCOLS, validate_port_number
from podium.lab.validation.metadata import validate_labels
from podium.lab.validation.names import config_key_reasons, dns_subdomain_reasons, port_name_reasons
from podium.lab.validation.placement import EFFECTS
from podium.lab.validation.quantities import validate_quantity
from podium.lab.validation.selectors import validate_label_selector, validate_qualified_name
from podium.lab.validation.workloads import validate_int_or_percent
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_label_value, label_value_reasons

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def validate_node(item: JsonObject) -> FieldErrors:
    """Validate a node: its taints, and the quantities of its resources."""
    yield from validate_taints((item.get("spec") or {}).get("taints") or [], "spec.taints")
    status = item.get("status") or {}
    for field in ("capacity", "allocatable"):
        for name, quantity in (status.get(field) or {}).items():
            yield from validate_quantity(quantity, f"status.{field}.{name}")


def validate_taints(found: list[JsonObject], path: str) -> FieldErrors:
    """Validate taints; a key may occur once with each effect."""
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(found):
        here = f"{path}[{index}]"
        name, value, effect = (each.get(field) or "" for field in ("key", "value", "effect"))
        yield from validate_qualified_name(name, f"{here}.key")
        if not is_label_value(value):
            for reason in label_value_reasons(value):
                yield invalid_value(f"{here}.value", value, reason)
        if not effect:
            yield required(f"{here}.effect")
        elif effect not in EFFECTS:
            yield not_supported(f"{here}.effect", effect, EFFECTS)
        if (name, effect) in seen:
            yield duplicate(here, each) if effect else required(f"{here}.effect")
        seen.add((name, effect))


def validate_node_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a node: its CIDR and provider ID cannot change once set."""
    new, before = item.get("spec") or {}, old.get("spec") or {}
    for field in ("podCIDR", "providerID"):
        if before.get(field) and new.get(field) != before[field]:
            shown = "podCIDRs" if field == "podCIDR" else field
            yield forbidden_field(
                f"spec.{shown}", f'node updates may not change {field} except from "" to valid'
            )


def validate_service(item: JsonObject) -> FieldErrors:
    """Validate a service: its type, ports, selector, session affinity and cluster IP."""
    spec = item["spec"]
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    yield from _validate_service_ports(spec.get("ports") or [])
    if spec.get("selector"):
        yield from validate_labels(spec["selector"], "spec.selector")
    if spec.get("sessionAffinity") not in {"ClientIP", "None"}:
        supported = ("ClientIP", "None")
        yield not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), supported)
    if kind not in _SERVICE_TYPES:
        yield not_supported("spec.type", kind, _SERVICE_TYPES)
    address = spec.get("clusterIP")
    if address and not headless and not _is_address(address):
        yield invalid_value(
            "spec.clusterIPs[0]",
            address,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _validate_service_ports(ports: list[JsonObject]) -> FieldErrors:
    seen: set[tuple[str, int]] = set()
    names: set[str] = set()
    for index, each in enumerate(ports):
        here = f"spec.ports[{index}]"
        name = each.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{here}.name")
        elif name and name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)
        number, protocol = each.get("port") or 0, each.get("protocol") or ""
        yield from validate_port_number(number, f"{here}.port")
        if protocol not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, PROTOCOLS)
        yield from _validate_target_port(each.get("targetPort") or number, f"{here}.targetPort")
        if (protocol, number) in seen:
            yield duplicate(here, each)
        seen.add((protocol, number))


def _validate_target_port(target: int | str, path: str) -> FieldErrors:
    if isinstance(target, str):
        for reason in port_name_reasons(target):
            yield invalid_value(path, target, reason)
    else:
        yield from validate_port_number(target, path)


def validate_service_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a service: its cluster IP cannot change once set."""
    new, before = item["spec"].get("clusterIP"), old["spec"].get("clusterIP")
    if before and new and new != before and item["spec"].get("type") != "ExternalName":
        yield invalid_value("spec.clusterIPs[0]", [new], "may not change once set")


def validate_budget(item: JsonObject) -> FieldErrors:
    """Validate a pod disruption budget: its selector, and one of its two limits."""
    spec = item.get("spec") or {}
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    if low is not None and high is not None:
        what = "minAvailable and maxUnavailable cannot be both set"
        yield invalid_value("spec", spec, what)
    if low is not None:
        yield from validate_int_or_percent(low, "spec.minAvailable")
    if high is not None:
        yield from validate_int_or_percent(high, "spec.maxUnavailable")
    yield from validate_label_selector(spec.get("selector"), "spec.selector")


def validate_priority_class(item: JsonObject) -> FieldErrors:
    """Validate a priority class: its name, its value and its preemption policy."""
    name, value = item["metadata"].get("name") or "", item.get("value") or 0
    if name.startswith("system-"):
        if name not in _SYSTEM_CLASSES:
            yield forbidden_field(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class",
            )
    elif value > _HIGHEST_PRIORITY:
        yield forbidden_field(
            "value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        )
    policy = item.get("preemptionPolicy")
    if policy not in {"PreemptLowerPriority", "Never"}:
        supported = ("PreemptLowerPriority", "Never")
        yield not_supported("preemptionPolicy", policy, supported)


def validate_priority_class_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a priority class: value and preemption policy cannot change."""
    if item.get("value", 0) != old.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    if item.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", item.get("preemptionPolicy"), "field is immutable")


def validate_lease(item: JsonObject) -> FieldErrors:
    """Validate a lease: its duration and its transitions."""
    spec = item.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    changes = spec.get("leaseTransitions")
    if changes is not None and changes < 0:
        what = "must be greater than or equal to 0"
        yield invalid_value("spec.leaseTransitions", changes, what)


def validate_event(item: JsonObject) -> FieldErrors:
    """Validate an event: it is in the namespace of the object it is about."""
    namespace = item["metadata"].get("namespace") or ""
    about = item.get("involvedObject") or {}
    own = about.get("namespace") or ""
    if own and own != namespace:
        what = "does not match event.namespace"
        yield invalid_value("involvedObject.namespace", own, what)


def validate_data_keys(item: JsonObject) -> FieldErrors:
    """Validate the keys of a config map or a secret."""
    for field in ("data", "binaryData"):
        for name in item.get(field) or {}:
            for reason in config_key_reasons(name):
                yield invalid_value(f"{field}[{name}]", name, reason)


def validate_csi_node(item: JsonObject) -> FieldErrors:
    """Validate the CSI drivers of a node."""
    for index, each in enumerate((item.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        for reason in dns_subdomain_reasons(name):
            yield invalid_value(f"{here}.name", name, reason)
        if not each.get("nodeID"):
            yield required(f"{here}.nodeID")
