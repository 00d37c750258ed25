"""Leases: defaults, validation, table.

Upstream: pkg/apis/coordination, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors, invalid_value
from podium.lab.kinds.formats import age
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.object_fields import name_of, text_at
from podium.lab.kinds.printer import Printer
from podium.objects.kinds.meta import JsonObject


def validate_lease(item: JsonObject) -> FieldErrors:
    """Validate a lease: its duration and its transitions."""
    spec = item.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    changes = spec.get("leaseTransitions")
    if changes is not None and changes < 0:
        what = "must be greater than or equal to 0"
        yield invalid_value("spec.leaseTransitions", changes, what)


def _lease_cells(lease: JsonObject, now: float) -> list[Any]:
    return [name_of(lease), text_at(lease, "spec", "holderIdentity"), age(lease, now)]


KINDS: Mapping[str, KindStrategy] = {
    "Lease": KindStrategy(
        validate=validate_lease,
        allows_unconditional_update=False,
        allows_create_on_update=True,
        table=Printer("Name, Holder, Age", _lease_cells),
    ),
}
