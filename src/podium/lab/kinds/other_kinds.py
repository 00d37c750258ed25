"""Kinds that declare little: defaults, validation, table.

Upstream: pkg/apis/coordination, pkg/apis/core, pkg/apis/rbac, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.field_checks import path_segment_reasons
from podium.lab.kinds.kind import (
    NONE,
    KindStrategy,
    Printer,
    container_cells_at,
    labels_cell,
    list_at,
    number_at,
    object_at,
)
from podium.objects.kinds.meta import JsonObject


def _used(quota: JsonObject, *, limits: bool) -> str:
    """What is used of the limits of a quota, or of everything else that it bounds."""
    used, hard = object_at(quota, "status", "used"), object_at(quota, "status", "hard")
    names = (name for name in sorted(hard) if name.startswith("limits.") is limits)
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)


def _controller(revision: JsonObject, _now: float) -> str:
    for owner in list_at(revision, "metadata", "ownerReferences"):
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = str(owner.get("kind", "")) + (f".{group}" if group else "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


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


def set_limit_range_defaults(item: JsonObject) -> None:
    """Set the defaults of container limits: `max` for the limit, and that for the request."""
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        default = limit.setdefault("default", {})
        for name, amount in (limit.get("max") or {}).items():
            default.setdefault(name, amount)
        asked = limit.setdefault("defaultRequest", {})
        for name, amount in default.items():
            asked.setdefault(name, amount)
        for name, amount in (limit.get("min") or {}).items():
            asked.setdefault(name, amount)


KINDS: Mapping[str, KindStrategy] = {
    "ClusterRole": KindStrategy(name_rule=path_segment_reasons),
    "ClusterRoleBinding": KindStrategy(name_rule=path_segment_reasons),
    "ControllerRevision": KindStrategy(
        table=Printer(
            "Name, Controller, Revision, Age",
            {"Controller": _controller, "Revision": lambda item, _: number_at(item, "revision")},
        )
    ),
    "Lease": KindStrategy(
        validate=validate_lease,
        allows_unconditional_update=False,
        allows_create_on_update=True,
        table=Printer("Name, Holder=spec.holderIdentity, Age"),
    ),
    "LimitRange": KindStrategy(set_defaults=set_limit_range_defaults),
    "PodTemplate": KindStrategy(
        table=Printer(
            "Name, Containers, Images, Pod Labels",
            {
                **container_cells_at("template"),
                "Pod Labels": labels_cell("template", "metadata", "labels"),
            },
        )
    ),
    "ResourceQuota": KindStrategy(
        table=Printer(
            "Name, Request, Limit, Age",
            {
                "Request": lambda item, _: _used(item, limits=False),
                "Limit": lambda item, _: _used(item, limits=True),
            },
        )
    ),
    "Role": KindStrategy(name_rule=path_segment_reasons),
    "RoleBinding": KindStrategy(name_rule=path_segment_reasons),
    "Scale": KindStrategy(
        table=Printer("Name, #Desired=spec.replicas, #Available=status.replicas, Age")
    ),
    "ServiceAccount": KindStrategy(table=Printer("Name, Age")),
}
