"""Horizontal pod autoscalers: defaults, validation, table.

Upstream: pkg/apis/autoscaling, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, invalid_value, required
from podium.lab.kinds.kind import (
    NONE,
    UNSET,
    KindStrategy,
    Printer,
    age,
    list_at,
    name_of,
    number_at,
    object_at,
    text_at,
)
from podium.objects.kinds.meta import JsonObject


def set_autoscaler_defaults(item: JsonObject) -> None:
    """Set the defaults of an autoscaler: one replica at least, 80 % of the requested CPU."""
    spec = item.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def new_autoscaler_status(_item: JsonObject) -> JsonObject:
    """The status of a new autoscaler."""
    return {"currentReplicas": 0, "desiredReplicas": 0}


def validate_autoscaler(item: JsonObject) -> FieldErrors:
    """The errors in an autoscaler."""
    spec = item["spec"]
    lowest, highest = spec.get("minReplicas", 1), spec.get("maxReplicas") or 0
    if lowest < 1:
        yield invalid_value("spec.minReplicas", lowest, "must be greater than or equal to 1")
    if highest < 1:
        yield invalid_value("spec.maxReplicas", highest, "must be greater than 0")
    elif highest < lowest:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid_value("spec.maxReplicas", highest, why)
    reference = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not reference.get(name):
            yield required(f"spec.scaleTargetRef.{name}")


def _autoscaler_cells(autoscaler: JsonObject, now: float) -> list[Any]:
    target = object_at(autoscaler, "spec", "scaleTargetRef")
    spec = object_at(autoscaler, "spec")
    return [
        name_of(autoscaler),
        f"{text_at(target, 'kind')}/{text_at(target, 'name')}",
        _targets(autoscaler),
        str(spec.get("minReplicas", UNSET)),
        number_at(autoscaler, "spec", "maxReplicas"),
        number_at(autoscaler, "status", "currentReplicas"),
        age(autoscaler, now),
    ]


def _targets(autoscaler: JsonObject) -> str:
    """The metrics of an autoscaler, each as what is and what shall be."""
    shown = []
    current = list_at(autoscaler, "status", "currentMetrics")
    for index, metric in enumerate(list_at(autoscaler, "spec", "metrics")):
        field = "containerResource" if metric.get("type") == "ContainerResource" else "resource"
        source = metric.get(field) or {}
        target = source.get("target") or {}
        now = (current[index].get(field) or {}).get("current") or {} if index < len(current) else {}
        if target.get("averageUtilization") is not None:
            is_now = now.get("averageUtilization")
            text = "<unknown>" if is_now is None else f"{is_now}%"
            shown.append(f"{source.get('name')}: {text}/{target['averageUtilization']}%")
        else:
            wanted = target.get("averageValue", "<auto>")
            shown.append(f"{source.get('name')}: {now.get('averageValue', '<unknown>')}/{wanted}")
    return ", ".join(shown) or NONE


KINDS: Mapping[str, KindStrategy] = {
    "HorizontalPodAutoscaler": KindStrategy(
        set_defaults=set_autoscaler_defaults,
        new_status=new_autoscaler_status,
        has_generation=True,
        validate=validate_autoscaler,
        table=Printer(
            "Name, Reference, Targets, MinPods, #MaxPods, #Replicas, Age", _autoscaler_cells
        ),
    ),
}
