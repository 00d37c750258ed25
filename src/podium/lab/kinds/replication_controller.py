"""Replication controllers: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors, invalid_value, not_supported, required
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.pod import validate_pod_spec
from podium.lab.kinds.printer import Printer, labels_text, object_at
from podium.lab.kinds.workload_fields import (
    UNMATCHED,
    new_replica_status,
    replicated_cells,
    spec_with_template,
    validate_non_negative,
)
from podium.lab.validation.metadata import validate_labels
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import from_map_literal


def _template_labels(item: JsonObject) -> JsonObject:
    labels: JsonObject = item["spec"]["template"]["metadata"].get("labels") or {}
    return labels


def set_replication_controller_defaults(item: JsonObject) -> None:
    """Set the defaults of a replication controller: the template gives selector and labels."""
    spec = spec_with_template(item)
    spec.setdefault("replicas", 1)
    labels = _template_labels(item)
    if labels:
        spec.setdefault("selector", dict(labels))
        item.setdefault("metadata", {}).setdefault("labels", dict(labels))


def validate_replication_controller(item: JsonObject) -> FieldErrors:
    """Validate a replication controller, whose selector is a map of labels."""
    spec = item["spec"]
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    yield from validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if selector and not from_map_literal(selector).matches(labels):
        yield invalid_value("spec.template.metadata.labels", labels, UNMATCHED)
    yield from validate_labels(labels, "spec.template.metadata.labels")
    yield from validate_pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))


def _replication_controller_cells(controller: JsonObject, now: float) -> list[Any]:
    return [
        *replicated_cells(controller, now),
        labels_text(object_at(controller, "spec", "selector")),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "ReplicationController": KindStrategy(
        set_defaults=set_replication_controller_defaults,
        new_status=new_replica_status,
        has_generation=True,
        validate=validate_replication_controller,
        table=Printer(
            "Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector",
            _replication_controller_cells,
        ),
    ),
}
