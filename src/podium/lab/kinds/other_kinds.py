"""Kinds with little of their own: defaults, validation, table.

Upstream: pkg/apis/coordination, pkg/apis/core, pkg/apis/rbac, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.field_checks import path_segment_reasons
from podium.lab.kinds.kind import (
    NONE,
    KindStrategy,
    Printer,
    age,
    container_cells,
    labels_text,
    list_at,
    name_of,
    number_at,
    object_at,
)
from podium.objects.kinds.meta import JsonObject


def _quota_cells(quota: JsonObject, now: float) -> list[Any]:
    used, hard = object_at(quota, "status", "used"), object_at(quota, "status", "hard")
    rows: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        rows[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [name_of(quota), ", ".join(rows[False]), ", ".join(rows[True]), age(quota, now)]


def _controller_revision_cells(revision: JsonObject, now: float) -> list[Any]:
    owner = next(
        (
            each
            for each in list_at(revision, "metadata", "ownerReferences")
            if each.get("controller")
        ),
        None,
    )
    name = NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")) + (f".{group}" if group else "")
        name = f"{kind.lower()}/{owner.get('name', '')}"
    return [
        name_of(revision),
        name,
        number_at(revision, "revision"),
        age(revision, now),
    ]


def _pod_template_cells(template: JsonObject, _now: float) -> list[Any]:
    inner = object_at(template, "template")
    return [
        name_of(template),
        *container_cells(inner),
        labels_text(object_at(inner, "metadata", "labels")),
    ]


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
        table=Printer("Name, Controller, Revision, Age", _controller_revision_cells)
    ),
    "Lease": KindStrategy(
        validate=validate_lease,
        allows_unconditional_update=False,
        allows_create_on_update=True,
        table=Printer("Name, Holder=spec.holderIdentity, Age"),
    ),
    "LimitRange": KindStrategy(set_defaults=set_limit_range_defaults),
    "PodTemplate": KindStrategy(
        table=Printer("Name, Containers, Images, Pod Labels", _pod_template_cells)
    ),
    "ResourceQuota": KindStrategy(table=Printer("Name, Request, Limit, Age", _quota_cells)),
    "Role": KindStrategy(name_rule=path_segment_reasons),
    "RoleBinding": KindStrategy(name_rule=path_segment_reasons),
    "Scale": KindStrategy(
        table=Printer("Name, #Desired=spec.replicas, #Available=status.replicas, Age")
    ),
    "ServiceAccount": KindStrategy(table=Printer("Name, Age")),
}
