"""What is refused in nodes, services, claims, volumes, classes, budgets and small objects.

Upstream: pkg/apis/core/validation, pkg/apis/storage/validation, pkg/apis/policy/validation,
pkg/apis/scheduling/validation, pkg/apis/coordination/validation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from podium.lab.api.field_errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.api.status import JsonDict
from podium.lab.validation.containers import PROTOCOLS, port_number
from podium.lab.validation.metadata import label_problems
from podium.lab.validation.names import config_key_reasons, port_name_reasons, subdomain_reasons
from podium.lab.validation.placement import EFFECTS
from podium.lab.validation.quantities import amount
from podium.lab.validation.selectors import key, label_selector
from podium.lab.validation.workloads import share
from podium.objects.names import is_label_value, label_value_reasons

Problems = Iterator[FieldError]

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def node(item: JsonDict) -> Problems:
    """A node."""
    yield from taints((item.get("spec") or {}).get("taints") or [], "spec.taints")
    status = item.get("status") or {}
    for field in ("capacity", "allocatable"):
        for name, quantity in (status.get(field) or {}).items():
            yield from amount(quantity, f"status.{field}.{name}")


def taints(found: list[JsonDict], path: str) -> Problems:
    """Taints, each key and effect once."""
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(found):
        here = f"{path}[{index}]"
        name, value, effect = (each.get(field) or "" for field in ("key", "value", "effect"))
        yield from key(name, f"{here}.key")
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


def node_update(item: JsonDict, old: JsonDict) -> Problems:
    """A node keeps the addresses it was given."""
    new, before = item.get("spec") or {}, old.get("spec") or {}
    for field in ("podCIDR", "providerID"):
        if before.get(field) and new.get(field) != before[field]:
            shown = "podCIDRs" if field == "podCIDR" else field
            yield forbidden_field(
                f"spec.{shown}", f'node updates may not change {field} except from "" to valid'
            )


def service(item: JsonDict) -> Problems:
    """A service."""
    spec = item["spec"]
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    yield from _service_ports(spec.get("ports") or [])
    if spec.get("selector"):
        yield from label_problems(spec["selector"], "spec.selector")
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


def _service_ports(ports: list[JsonDict]) -> Problems:
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
        yield from port_number(number, f"{here}.port")
        if protocol not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, PROTOCOLS)
        yield from _target(each.get("targetPort") or number, f"{here}.targetPort")
        if (protocol, number) in seen:
            yield duplicate(here, each)
        seen.add((protocol, number))


def _target(target: int | str, path: str) -> Problems:
    if isinstance(target, str):
        for reason in port_name_reasons(target):
            yield invalid_value(path, target, reason)
    else:
        yield from port_number(target, path)


def same_address(item: JsonDict, old: JsonDict) -> Problems:
    """A service keeps its address."""
    new, before = item["spec"].get("clusterIP"), old["spec"].get("clusterIP")
    if before and new and new != before and item["spec"].get("type") != "ExternalName":
        yield invalid_value("spec.clusterIPs[0]", [new], "may not change once set")


def budget(item: JsonDict) -> Problems:
    """A disruption budget."""
    spec = item.get("spec") or {}
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    if low is not None and high is not None:
        what = "minAvailable and maxUnavailable cannot be both set"
        yield invalid_value("spec", spec, what)
    if low is not None:
        yield from share(low, "spec.minAvailable")
    if high is not None:
        yield from share(high, "spec.maxUnavailable")
    yield from label_selector(spec.get("selector"), "spec.selector")


def priority_class(item: JsonDict) -> Problems:
    """A priority class."""
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


def priority_class_update(item: JsonDict, old: JsonDict) -> Problems:
    """A priority stays what it is."""
    if item.get("value", 0) != old.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    if item.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", item.get("preemptionPolicy"), "field is immutable")


def lease(item: JsonDict) -> Problems:
    """A lease."""
    spec = item.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    changes = spec.get("leaseTransitions")
    if changes is not None and changes < 0:
        what = "must be greater than or equal to 0"
        yield invalid_value("spec.leaseTransitions", changes, what)


def event(item: JsonDict) -> Problems:
    """An event lives where its object does."""
    namespace = item["metadata"].get("namespace") or ""
    about = item.get("involvedObject") or {}
    own = about.get("namespace") or ""
    if own and own != namespace:
        what = "does not match event.namespace"
        yield invalid_value("involvedObject.namespace", own, what)


def keys(item: JsonDict) -> Problems:
    """The entries of a config map or a secret have names."""
    for field in ("data", "binaryData"):
        for name in item.get(field) or {}:
            for reason in config_key_reasons(name):
                yield invalid_value(f"{field}[{name}]", name, reason)


def csi_node(item: JsonDict) -> Problems:
    """What a node knows of its drivers."""
    for index, each in enumerate((item.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        for reason in subdomain_reasons(name):
            yield invalid_value(f"{here}.name", name, reason)
        if not each.get("nodeID"):
            yield required(f"{here}.nodeID")
