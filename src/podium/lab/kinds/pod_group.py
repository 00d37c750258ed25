"""Pod groups: defaults, validation, table.

Upstream: pkg/apis/scheduling, pkg/registry/scheduling/podgroup, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, forbidden_field, invalid_value, required
from podium.lab.kinds.field_checks import validate_unchanged
from podium.lab.kinds.kind import KindStrategy, Printer, condition_status, object_at
from podium.objects.kinds.meta import JsonObject

#: Fields of which exactly one member is set.
_CHOICES = {"schedulingPolicy": ("basic", "gang"), "disruptionMode": ("single", "all")}
#: Fields behind feature gates that are off.
_GATED_FIELDS = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "preemptionPolicy": "PodGroupPreemptionPolicy",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "parentCompositePodGroupName": "CompositePodGroup",
}


def set_pod_group_defaults(item: JsonObject) -> None:
    """Set the defaults of a pod group: its pods are evicted one by one."""
    item.setdefault("spec", {}).setdefault("disruptionMode", {"single": {}})


def validate_pod_group(item: JsonObject) -> FieldErrors:
    """Validate a pod group: one policy, a minimum of at least one pod, one disruption mode."""
    spec = item.get("spec") or {}
    for field, names in _CHOICES.items():
        given = [name for name in names if name in (spec.get(field) or {})]
        if len(given) != 1:
            what = f"must specify exactly one of: {', '.join(f'`{name}`' for name in names)}"
            yield invalid_value(f"spec.{field}", "", what)
    gang = (spec.get("schedulingPolicy") or {}).get("gang")
    path = "spec.schedulingPolicy.gang.minCount"
    if gang is not None and not gang.get("minCount"):
        yield required(path)
    elif gang is not None and gang["minCount"] < 1:
        yield invalid_value(path, gang["minCount"], "must be greater than or equal to 1")
    for field, gate in _GATED_FIELDS.items():
        if spec.get(field):
            yield forbidden_field(f"spec.{field}", f"the feature gate {gate} is off")


def validate_pod_group_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a pod group: of its specification, only minCount may change."""
    spec, before = item.get("spec") or {}, old.get("spec") or {}
    yield from validate_unchanged(
        item, old, "priorityClassName", "priority", "disruptionMode", "workloadRef"
    )
    if set(spec.get("schedulingPolicy") or {}) != set(before.get("schedulingPolicy") or {}):
        policy = spec.get("schedulingPolicy")
        yield invalid_value("spec.schedulingPolicy", policy, "field is immutable")


def _policy(group: JsonObject, _now: float) -> str:
    return "Gang" if "gang" in object_at(group, "spec", "schedulingPolicy") else "Basic"


def _status(group: JsonObject, _now: float) -> str:
    scheduled = condition_status(group, "PodGroupInitiallyScheduled")
    words = {"": "Pending", "True": "Scheduled"}
    return words.get(scheduled, "Unschedulable")


KINDS: Mapping[str, KindStrategy] = {
    "PodGroup": KindStrategy(
        set_defaults=set_pod_group_defaults,
        has_generation=True,
        validate=validate_pod_group,
        validate_update=validate_pod_group_update,
        table=Printer(
            "Name, Policy, Workload=spec.workloadRef.workloadName|<none>, Status, Age",
            {"Policy": _policy, "Status": _status},
        ),
    ),
}
