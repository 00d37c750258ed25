"""Daemon sets: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, not_supported
from podium.lab.kinds.kind import (
    NONE,
    KindStrategy,
    Printer,
    age,
    labels_text,
    name_of,
    number_at,
    object_at,
)
from podium.lab.kinds.workload_fields import (
    HISTORY_LIMIT,
    selector_cell,
    spec_with_template,
    template_cells,
    validate_non_negative,
    validate_selector,
    validate_selector_unchanged,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def new_daemon_set_status(_item: JsonObject) -> JsonObject:
    """The status of a new daemon set."""
    fields = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    return dict.fromkeys((*fields, "numberReady"), 0)


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
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        kinds = ("RollingUpdate", "OnDelete")
        yield not_supported("spec.updateStrategy.type", strategy.get("type"), kinds)


def _daemon_set_cells(daemon_set: JsonObject, now: float) -> list[Any]:
    status = object_at(daemon_set, "status")
    return [
        name_of(daemon_set),
        number_at(status, "desiredNumberScheduled"),
        number_at(status, "currentNumberScheduled"),
        number_at(status, "numberReady"),
        number_at(status, "updatedNumberScheduled"),
        number_at(status, "numberAvailable"),
        labels_text(object_at(daemon_set, "spec", "template", "spec", "nodeSelector")),
        age(daemon_set, now),
        *template_cells(daemon_set),
        selector_cell(daemon_set) or NONE,
    ]


KINDS: Mapping[str, KindStrategy] = {
    "DaemonSet": KindStrategy(
        set_defaults=set_daemon_set_defaults,
        complete_new=set_template_generation,
        new_status=new_daemon_set_status,
        has_generation=True,
        validate=validate_daemon_set,
        validate_update=validate_selector_unchanged,
        table=Printer(
            "Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age, "
            "*Containers, *Images, *Selector",
            _daemon_set_cells,
        ),
    ),
}
