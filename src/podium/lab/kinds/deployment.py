"""Deployments: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, forbidden_field, invalid_value, not_supported
from podium.lab.kinds.kind import KindStrategy, Printer, number_at
from podium.lab.kinds.workload_fields import (
    HISTORY_LIMIT,
    TEMPLATE_CELLS,
    ready_cell,
    spec_with_template,
    validate_int_or_percent,
    validate_non_negative,
    validate_selector,
    validate_selector_unchanged,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject


def set_deployment_defaults(item: JsonObject) -> None:
    """Set the defaults of a deployment."""
    spec = spec_with_template(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", HISTORY_LIMIT)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _is_zero(value: Any) -> bool:
    return value in {0, "0%"}


def validate_deployment(item: JsonObject) -> FieldErrors:
    """Validate the numbers, selector, template, strategy and deadline of a deployment."""
    spec = item["spec"]
    yield from validate_non_negative(spec, "spec", "replicas")
    yield from validate_selector(item, "deployment")
    yield from validate_template(item)
    yield from _validate_strategy(spec["strategy"])
    yield from validate_non_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    yield from validate_non_negative(spec, "spec", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and 0 <= deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value(
            "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )


def _validate_strategy(strategy: JsonObject) -> FieldErrors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden_field(
                "spec.strategy.rollingUpdate",
                "may not be specified when strategy `type` is 'Recreate'",
            )
    elif kind != "RollingUpdate":
        yield not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    elif rolling:
        path = "spec.strategy.rollingUpdate"
        yield from validate_int_or_percent(rolling["maxUnavailable"], f"{path}.maxUnavailable")
        yield from validate_int_or_percent(rolling["maxSurge"], f"{path}.maxSurge")
        if _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
            yield invalid_value(
                f"{path}.maxUnavailable",
                rolling["maxUnavailable"],
                "may not be 0 when `maxSurge` is 0",
            )


KINDS: Mapping[str, KindStrategy] = {
    "Deployment": KindStrategy(
        set_defaults=set_deployment_defaults,
        has_generation=True,
        validate=validate_deployment,
        validate_update=validate_selector_unchanged,
        table=Printer(
            "Name, Ready, Up-to-date, Available, Age, *Containers, *Images, *Selector",
            {
                "Ready": ready_cell,
                "Up-to-date": lambda item, _: number_at(item, "status", "updatedReplicas"),
                "Available": lambda item, _: number_at(item, "status", "availableReplicas"),
                **TEMPLATE_CELLS,
            },
        ),
    ),
}
