"""Nodes: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import (
    FieldErrors,
    duplicate,
    forbidden_field,
    not_supported,
    required,
)
from podium.lab.kinds.field_checks import (
    validate_label_value,
    validate_qualified_name,
    validate_quantity,
)
from podium.lab.kinds.kind import (
    NONE,
    UNKNOWN,
    KindStrategy,
    Printer,
    condition_status,
    list_at,
    object_at,
    text_at,
)
from podium.lab.kinds.pod import EFFECTS
from podium.objects.kinds.meta import JsonObject

_ROLE_LABEL = "node-role.kubernetes.io/"


def set_node_defaults(item: JsonObject) -> None:
    """Set the defaults of a node: all of its capacity is allocatable."""
    item.setdefault("spec", {})
    status = item.setdefault("status", {})
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


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
        yield from validate_label_value(value, f"{here}.value")
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


def _status(node: JsonObject, _now: float) -> str:
    ready = condition_status(node, "Ready")
    status = ("Ready" if ready == "True" else "NotReady") if ready else "Unknown"
    cordoned = object_at(node, "spec").get("unschedulable")
    return f"{status},SchedulingDisabled" if cordoned else status


def _kernel(node: JsonObject, _now: float) -> str:
    info = object_at(node, "status", "nodeInfo")
    kernel, machine = text_at(info, "kernelVersion", default=UNKNOWN), text_at(info, "architecture")
    return f"{kernel} ({machine})" if machine else kernel


def _roles(node: JsonObject, _now: float) -> str:
    found = set()
    for key, value in object_at(node, "metadata", "labels").items():
        if key.startswith(_ROLE_LABEL):
            found.add(key.removeprefix(_ROLE_LABEL))
        elif key == "kubernetes.io/role":
            found.add(str(value))
    return ",".join(sorted(found - {""})) or NONE


def _address(node: JsonObject, kind: str) -> str:
    found = (each for each in list_at(node, "status", "addresses") if each.get("type") == kind)
    return next((str(each.get("address")) for each in found), NONE)


KINDS: Mapping[str, KindStrategy] = {
    "Node": KindStrategy(
        set_defaults=set_node_defaults,
        new_status=None,
        validate=validate_node,
        validate_update=validate_node_update,
        table=Printer(
            "Name, Status, Roles, Age, Version=status.nodeInfo.kubeletVersion, *Internal-IP, "
            "*External-IP, *OS-Image=status.nodeInfo.osImage|<unknown>, *Kernel-Version, "
            "*Container-Runtime=status.nodeInfo.containerRuntimeVersion|<unknown>",
            {
                "Status": _status,
                "Roles": _roles,
                "Internal-IP": lambda item, _: _address(item, "InternalIP"),
                "External-IP": lambda item, _: _address(item, "ExternalIP"),
                "Kernel-Version": _kernel,
            },
        ),
    ),
}
