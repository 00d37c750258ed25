"""Horizontal pod autoscalers: defaults, validation, table.

Upstream: pkg/apis/autoscaling, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.lab.api.status import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.kinds.kind import NONE, KindStrategy, Printer, list_at, object_at, text_at
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import nano

#: The types of metrics, each with the field that describes it.
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_OF_RESOURCES: Final = frozenset({"ContainerResource", "Resource"})
_TARGET_TYPES: Final = frozenset({"Utilization", "Value", "AverageValue"})


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
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield from _metric_errors(metric, f"spec.metrics[{index}]")


def _metric_errors(metric: JsonObject, field: str) -> FieldErrors:
    """The errors in a metric; only those of resources are looked into."""
    kind = metric.get("type") or ""
    if kind not in _SOURCES:
        yield not_supported(f"{field}.type", kind, sorted(_SOURCES))
        return
    name = _SOURCES[kind]
    if metric.get(name) is None:
        why = "must populate information for the given metric source"
        yield required(f"{field}.{name}", why)
    elif kind in _OF_RESOURCES:
        yield from _source_errors(metric[name], f"{field}.{name}")


def _source_errors(source: JsonObject, field: str) -> FieldErrors:
    """The errors in what a metric of a resource aims at."""
    if not source.get("name"):
        yield required(f"{field}.name", "must specify a resource name")
    target, field = source.get("target") or {}, f"{field}.target"
    if not target.get("type"):
        yield required(f"{field}.type", "must specify a metric target type")
    if target.get("type") not in _TARGET_TYPES:
        why = "must be either Utilization, Value, or AverageValue"
        yield invalid_value(f"{field}.type", target.get("type") or "", why)
    share, value = target.get("averageUtilization"), target.get("averageValue")
    if value is not None and nano(value) <= 0:
        yield invalid_value(f"{field}.averageValue", value, "must be positive")
    if share is not None and share < 1:
        yield invalid_value(f"{field}.averageUtilization", share, "must be greater than 0")
    if share is None and value is None:
        why = "must set either a target raw value or a target utilization"
        yield required(f"{field}.averageUtilization", why)
    if share is not None and value is not None:
        why = "may not set both a target raw value and a target utilization"
        yield forbidden_field(f"{field}.averageValue", why)


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
