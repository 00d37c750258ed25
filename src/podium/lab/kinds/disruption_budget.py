"""Pod disruption budgets: defaults, validation, table.

Upstream: pkg/apis/policy, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.field_checks import validate_label_selector
from podium.lab.kinds.kind import KindStrategy, Printer, age, name_of, number_at, text_at
from podium.lab.kinds.workload_fields import validate_int_or_percent
from podium.objects.kinds.meta import JsonObject


def new_budget_status(_item: JsonObject) -> JsonObject:
    """The status of a new disruption budget."""
    return {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }


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


def _disruption_budget_cells(budget: JsonObject, now: float) -> list[Any]:
    return [
        name_of(budget),
        text_at(budget, "spec", "minAvailable", default="N/A"),
        text_at(budget, "spec", "maxUnavailable", default="N/A"),
        number_at(budget, "status", "disruptionsAllowed"),
        age(budget, now),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "PodDisruptionBudget": KindStrategy(
        new_status=new_budget_status,
        has_generation=True,
        validate=validate_budget,
        allows_unconditional_update=False,
        table=Printer(
            "Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
            _disruption_budget_cells,
        ),
    ),
}
