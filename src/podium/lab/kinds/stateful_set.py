"""Stateful sets: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import FieldErrors, forbidden_field, invalid_value
from podium.lab.kinds.kind import KindStrategy, Printer
from podium.lab.kinds.workload_fields import (
    HISTORY_LIMIT,
    TEMPLATE_CELLS,
    ready_cell,
    spec_with_template,
    validate_non_negative,
    validate_selector,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject

_MUTABLE_STATEFUL_FIELDS = frozenset(
    {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
     "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}
)  # fmt: skip


def set_stateful_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a stateful set."""
    spec = spec_with_template(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", HISTORY_LIMIT)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    keep = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    keep.setdefault("whenDeleted", "Retain")
    keep.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def validate_stateful_set(item: JsonObject) -> FieldErrors:
    """Validate the policies, numbers, selector and template of a stateful set."""
    spec = item["spec"]
    policy = spec.get("podManagementPolicy")
    if policy not in {"OrderedReady", "Parallel"}:
        what = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, what)
    strategy = spec["updateStrategy"]
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        what = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid_value("spec.updateStrategy", strategy, what)
    yield from validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from validate_selector(item, "statefulset")
    yield from validate_template(item)


def validate_stateful_set_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a stateful set: most fields of its spec are immutable."""
    new, before = item["spec"], old["spec"]
    changed = {key for key in new.keys() | before.keys() if new.get(key) != before.get(key)}
    if changed - _MUTABLE_STATEFUL_FIELDS:
        yield forbidden_field(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
            "forbidden",
        )


KINDS: Mapping[str, KindStrategy] = {
    "StatefulSet": KindStrategy(
        set_defaults=set_stateful_set_defaults,
        new_status={"replicas": 0},
        has_generation=True,
        validate=validate_stateful_set,
        validate_update=validate_stateful_set_update,
        table=Printer(
            "Name, Ready, Age, *Containers, *Images", {"Ready": ready_cell, **TEMPLATE_CELLS}
        ),
    ),
}
