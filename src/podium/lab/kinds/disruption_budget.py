"""Pod disruption budgets: defaults, validation, table.

Upstream: pkg/apis/policy, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.field_checks import validate_label_selector
from podium.lab.kinds.kind import KindStrategy, Printer
from podium.lab.kinds.workload_fields import validate_int_or_percent
from podium.objects.kinds.meta import JsonObject

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


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


KINDS: Mapping[str, KindStrategy] = {
    "PodDisruptionBudget": KindStrategy(
        new_status=dict.fromkeys(_COUNTS, 0),
        has_generation=True,
        validate=validate_budget,
        allows_unconditional_update=False,
        table=Printer(
            "Name, Min Available=spec.minAvailable|N/A, Max Unavailable=spec.maxUnavailable|N/A, "
            "#Allowed Disruptions=status.disruptionsAllowed, Age"
        ),
    ),
}
