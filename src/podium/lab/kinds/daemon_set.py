"""Daemon sets: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors
from podium.lab.kinds.field_checks import validate_choice
from podium.lab.kinds.kind import KindStrategy, Printer, labels_cell
from podium.lab.kinds.workload_fields import (
    HISTORY_LIMIT,
    TEMPLATE_CELLS,
    spec_with_template,
    validate_non_negative,
    validate_selector,
    validate_selector_unchanged,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NEW_STATUS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def set_template_generation(item: JsonObject) -> None:
    """Set the deprecated annotation that counts the templates of a daemon set."""
    about = item["metadata"]
    about["annotations"] = {**(about.get("annotations") or {}), _TEMPLATE_GENERATION: "1"}


def set_daemon_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a daemon set."""
    spec = spec_with_template(item)
    spec.setdefault("revisionHistoryLimit", HISTORY_LIMIT)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def validate_daemon_set(item: JsonObject) -> FieldErrors:
    """Validate the selector, template, numbers and update strategy of a daemon set."""
    spec = item["spec"]
    yield from validate_selector(item, "daemonset")
    yield from validate_template(item)
    yield from validate_non_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy = spec["updateStrategy"]
    yield from validate_choice(
        strategy.get("type"), "spec.updateStrategy.type", ("RollingUpdate", "OnDelete")
    )


KINDS: Mapping[str, KindStrategy] = {
    "DaemonSet": KindStrategy(
        set_defaults=set_daemon_set_defaults,
        complete_new=set_template_generation,
        new_status=dict.fromkeys(_NEW_STATUS, 0),
        has_generation=True,
        validate=validate_daemon_set,
        validate_update=validate_selector_unchanged,
        table=Printer(
            "Name, #Desired=status.desiredNumberScheduled, #Current=status.currentNumberScheduled, "
            "#Ready=status.numberReady, #Up-to-date=status.updatedNumberScheduled, "
            "#Available=status.numberAvailable, Node Selector, Age, *Containers, *Images, "
            "*Selector",
            {
                "Node Selector": labels_cell("spec", "template", "spec", "nodeSelector"),
                **TEMPLATE_CELLS,
            },
        ),
    ),
}
