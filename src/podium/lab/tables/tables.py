"""Tables of objects of one kind.

Upstream: pkg/printers/internalversion.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from podium.lab.api.resources import CustomVersion
from podium.lab.kinds.known import KINDS
from podium.lab.kinds.object_fields import metadata_of, name_of, text_at
from podium.lab.kinds.printer import Printer
from podium.lab.tables.custom import cells, column_definitions
from podium.objects.kinds.meta import JsonObject


def _name_and_creation(item: JsonObject, _now: float) -> list[Any]:
    return [name_of(item), text_at(item, "metadata", "creationTimestamp")]


#: The printer of kinds that have none of their own.
DEFAULT = Printer("Name, @Created At", _name_and_creation)


def table(
    kind: str,
    objects: Sequence[JsonObject],
    *,
    include_object: str = "Metadata",
    now: float | None = None,
) -> JsonObject:
    """A `Table` of objects of one kind.

    *include_object* says what each row holds of its object: `Metadata`, `Object` or `None`.
    """
    at = time.time() if now is None else now
    known = KINDS.get(kind)
    printer = DEFAULT if known is None or known.table is None else known.table
    rows: list[JsonObject] = []
    for each in objects:
        row: JsonObject = {"cells": printer.cells(each, at)}
        if conditions := printer.conditions(each):
            row["conditions"] = conditions
        row["object"] = _included(each, include_object)
        rows.append(row)
    printer.finish(objects, rows)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": printer.column_definitions(),
        "rows": rows,
    }


def custom_table(
    custom: CustomVersion,
    objects: Sequence[JsonObject],
    *,
    include_object: str = "Metadata",
    now: float | None = None,
) -> JsonObject:
    """A `Table` of custom objects, with the columns of their definition."""
    at = time.time() if now is None else now
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": column_definitions(custom),
        "rows": [
            {"cells": cells(custom, each, at), "object": _included(each, include_object)}
            for each in objects
        ],
    }


def _included(item: JsonObject, include: str) -> JsonObject | None:
    if include == "None":
        return None
    if include == "Object":
        return item
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata_of(item),
    }
