"""Priority classes: defaults, validation, table.

Upstream: pkg/apis/scheduling, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, forbidden_field, invalid_value
from podium.lab.kinds.field_checks import validate_choice
from podium.lab.kinds.kind import KindStrategy, Printer, defaults
from podium.objects.kinds.meta import JsonObject

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


def validate_priority_class(item: JsonObject) -> FieldErrors:
    """Validate a priority class: its name, its value and its preemption policy."""
    name, value = item["metadata"].get("name") or "", item.get("value") or 0
    if name.startswith("system-"):
        if name not in _SYSTEM_CLASSES:
            yield forbidden_field(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class",
            )
    elif value > _HIGHEST_PRIORITY:
        yield forbidden_field(
            "value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        )
    policy = item.get("preemptionPolicy")
    yield from validate_choice(policy, "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def validate_priority_class_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a priority class: value and preemption policy cannot change."""
    if item.get("value", 0) != old.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    if item.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", item.get("preemptionPolicy"), "field is immutable")


KINDS: Mapping[str, KindStrategy] = {
    "PriorityClass": KindStrategy(
        set_defaults=defaults({"value": 0, "preemptionPolicy": "PreemptLowerPriority"}),
        has_generation=True,
        validate=validate_priority_class,
        validate_update=validate_priority_class_update,
        table=Printer(
            "Name, #Value=value, ?Global-Default=globalDefault, Age, "
            "PreemptionPolicy=preemptionPolicy"
        ),
    ),
}
