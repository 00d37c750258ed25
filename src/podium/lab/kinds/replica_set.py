"""Replica sets: defaults, validation, table.

Upstream: pkg/apis/apps, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.printer import NONE, Printer
from podium.lab.kinds.workload_fields import (
    new_replica_status,
    replicated_cells,
    selector_cell,
    spec_with_template,
    validate_non_negative,
    validate_selector,
    validate_selector_unchanged,
    validate_template,
)
from podium.objects.kinds.meta import JsonObject


def set_replica_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a replica set."""
    spec_with_template(item).setdefault("replicas", 1)


def validate_replica_set(item: JsonObject) -> FieldErrors:
    """Validate the numbers, selector and template of a replica set."""
    yield from validate_non_negative(item["spec"], "spec", "replicas", "minReadySeconds")
    yield from validate_selector(item, "replicaset")
    yield from validate_template(item)


def _replica_set_cells(replica_set: JsonObject, now: float) -> list[Any]:
    return [*replicated_cells(replica_set, now), selector_cell(replica_set) or NONE]


KINDS: Mapping[str, KindStrategy] = {
    "ReplicaSet": KindStrategy(
        set_defaults=set_replica_set_defaults,
        new_status=new_replica_status,
        has_generation=True,
        validate=validate_replica_set,
        validate_update=validate_selector_unchanged,
        table=Printer(
            "Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector",
            _replica_set_cells,
        ),
    ),
}
