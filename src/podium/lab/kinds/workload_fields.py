"""What workloads have in common: templates, selectors, replicas.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from podium.lab.api.status import FieldErrors, invalid_value, required
from podium.lab.kinds.field_checks import (
    validate_choice,
    validate_label_selector,
    validate_labels,
    validate_unchanged,
)
from podium.lab.kinds.kind import (
    NONE,
    Cell,
    container_cells_at,
    number_at,
    object_at,
    selector_text,
)
from podium.lab.kinds.pod import set_template_defaults, validate_pod_spec
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import SelectorError, from_label_selector

HISTORY_LIMIT = 10
_NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
UNMATCHED = "`selector` does not match template `labels`"


def spec_with_template(item: JsonObject) -> JsonObject:
    """The spec of a workload, with the defaults of its pod template."""
    spec: JsonObject = item.setdefault("spec", {})
    set_template_defaults(spec.setdefault("template", {}))
    return spec


def validate_non_negative(spec: JsonObject, path: str, *fields: str) -> FieldErrors:
    """Validate numbers that cannot be negative."""
    for field in fields:
        if (spec.get(field) or 0) < 0:
            yield invalid_value(f"{path}.{field}", spec[field], _NOT_NEGATIVE)


def validate_selector(item: JsonObject, kind: str) -> FieldErrors:
    """Validate a selector, which must exist and must not be empty."""
    selector = item["spec"].get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        what = f"empty selector is invalid for {kind}"
        yield invalid_value("spec.selector", selector, what)


def validate_template(item: JsonObject, *, restart: tuple[str, ...] = ("Always",)) -> FieldErrors:
    """Validate the pod template, whose labels the selector must match."""
    spec = item["spec"]
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if not selects(spec.get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, UNMATCHED)
    yield from validate_labels(labels, "spec.template.metadata.labels")
    claims = spec.get("volumeClaimTemplates") or ()
    claimed = [(each.get("metadata") or {}).get("name") or "" for each in claims]
    yield from validate_pod_spec(made["spec"], "spec.template.spec", claimed)
    policy = made["spec"].get("restartPolicy")
    yield from validate_choice(policy, "spec.template.spec.restartPolicy", restart)


def selects(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    """Whether a selector matches labels."""
    try:
        wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
        found = from_label_selector(wanted)
    except (SelectorError, msgspec.ValidationError):
        return True  # an invalid selector is reported by its own validation
    return found.empty or found.matches(labels)


def validate_int_or_percent(value: Any, path: str) -> FieldErrors:
    """Validate a number of pods or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield invalid_value(path, value, _NOT_NEGATIVE)
    elif not re.fullmatch("[0-9]+%", value):
        yield invalid_value(path, value, _PERCENT)
    elif int(value[:-1]) > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def validate_selector_unchanged(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a workload whose selector is immutable."""
    yield from validate_unchanged(item, old, "selector")


def ready_cell(object_: JsonObject, _now: float) -> str:
    """How many of the replicas that the spec asks for are ready."""
    ready, wanted = (object_, "status", "readyReplicas"), (object_, "spec", "replicas")
    return f"{number_at(*ready)}/{number_at(*wanted)}"


def template_cells_at(*path: str) -> Mapping[str, Cell]:
    """The last columns of most workloads; *path* leads to the spec with template and selector."""
    return {
        **container_cells_at(*path, "template"),
        "Selector": lambda item, _: selector_text(object_at(item, *path, "selector")) or NONE,
    }


TEMPLATE_CELLS = template_cells_at("spec")
