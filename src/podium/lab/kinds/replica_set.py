"""Replica sets and replication controllers: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, invalid_value, not_supported, required
from podium.lab.kinds.field_checks import validate_labels
from podium.lab.kinds.kind import KindStrategy, Printer, labels_cell
from podium.lab.kinds.pod import validate_pod_spec
from podium.lab.kinds.workload_fields import (
    TEMPLATE_CELLS,
    UNMATCHED,
    spec_with_template,
    validate_non_negative,
    validate_selector,
    validate_selector_unchanged,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import from_map_literal


def set_replica_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a replica set."""
    spec_with_template(item).setdefault("replicas", 1)


def validate_replica_set(item: JsonObject) -> FieldErrors:
    """Validate the numbers, selector and template of a replica set."""
    yield from validate_non_negative(item["spec"], "spec", "replicas", "minReadySeconds")
    yield from validate_selector(item, "replicaset")
    yield from validate_template(item)


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


_COLUMNS = (
    "Name, #Desired=spec.replicas, #Current=status.replicas, #Ready=status.readyReplicas, Age, "
    "*Containers, *Images, *Selector"
)


KINDS: Mapping[str, KindStrategy] = {
    "ReplicaSet": KindStrategy(
        set_defaults=set_replica_set_defaults,
        new_status={"replicas": 0},
        has_generation=True,
        validate=validate_replica_set,
        validate_update=validate_selector_unchanged,
        table=Printer(_COLUMNS, TEMPLATE_CELLS),
    ),
    "ReplicationController": KindStrategy(
        set_defaults=set_replication_controller_defaults,
        new_status={"replicas": 0},
        has_generation=True,
        validate=validate_replication_controller,
        table=Printer(_COLUMNS, {**TEMPLATE_CELLS, "Selector": labels_cell("spec", "selector")}),
    ),
}
