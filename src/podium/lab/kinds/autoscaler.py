"""Horizontal pod autoscalers: defaults, validation, table.

Upstream: pkg/apis/autoscaling, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, invalid_value, required
from podium.lab.kinds.kind import NONE, KindStrategy, Printer, list_at, object_at, text_at
from podium.objects.kinds.meta import JsonObject


def set_autoscaler_defaults(item: JsonObject) -> None:
    """Set the defaults of an autoscaler: one replica at least, 80 % of the requested CPU."""
    spec = item.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


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


def _reference(autoscaler: JsonObject, _now: float) -> str:
    target = object_at(autoscaler, "spec", "scaleTargetRef")
    return f"{text_at(target, 'kind')}/{text_at(target, 'name')}"


def _targets(autoscaler: JsonObject, _now: float) -> str:
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
        new_status={"currentReplicas": 0, "desiredReplicas": 0},
        has_generation=True,
        validate=validate_autoscaler,
        table=Printer(
            "Name, Reference, Targets, MinPods=spec.minReplicas|<unset>, "
            "#MaxPods=spec.maxReplicas, #Replicas=status.currentReplicas, Age",
            {"Reference": _reference, "Targets": _targets},
        ),
    ),
}
