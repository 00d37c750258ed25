"""Priority classes: defaults, validation, table.

Upstream: pkg/apis/scheduling, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, forbidden_field, invalid_value, not_supported
from podium.lab.kinds.kind import KindStrategy, Printer, age, name_of, number_at, text_at
from podium.objects.kinds.meta import JsonObject

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


def set_priority_class_defaults(item: JsonObject) -> None:
    """Set the defaults of a priority class."""
    item.setdefault("value", 0)
    item.setdefault("preemptionPolicy", "PreemptLowerPriority")


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
    if policy not in {"PreemptLowerPriority", "Never"}:
        supported = ("PreemptLowerPriority", "Never")
        yield not_supported("preemptionPolicy", policy, supported)


def validate_priority_class_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a priority class: value and preemption policy cannot change."""
    if item.get("value", 0) != old.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    if item.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", item.get("preemptionPolicy"), "field is immutable")


def _priority_class_cells(priority: JsonObject, now: float) -> list[Any]:
    return [
        name_of(priority),
        number_at(priority, "value"),
        bool(priority.get("globalDefault")),
        age(priority, now),
        text_at(priority, "preemptionPolicy"),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "PriorityClass": KindStrategy(
        set_defaults=set_priority_class_defaults,
        has_generation=True,
        validate=validate_priority_class,
        validate_update=validate_priority_class_update,
        table=Printer(
            "Name, #Value, ?Global-Default, Age, PreemptionPolicy",
            _priority_class_cells,
        ),
    ),
}
