"""Tables of objects of one kind; those of custom objects have the columns of their definition.

Upstream: pkg/printers/internalversion,
apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from podium.lab.api.encoding import encode
from podium.lab.api.resources import CustomVersion
from podium.lab.kinds.kind import Printer, metadata_of, name_of, time_since
from podium.lab.kinds.known import KINDS
from podium.objects.kinds.meta import JsonObject

_AGE: Final[JsonObject] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": (
        "CreationTimestamp is a timestamp representing the server time when this object was "
        "created."
    ),
}
#: The types of the values that columns of a type show.
_CELL_TYPES: Final = {"integer": (int,), "number": (int, float), "boolean": (bool,)}
_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)          # .field, with \. for a dot
      | \[(?P<index>-?\d+)\]                    # [0]
      | \[(?P<all>\*)\]                         # [*]
      | \[['"](?P<quoted>[^'"\]]*)['"]\]        # ['field']
      | \[\?\(@\.(?P<key>[^=\s!<>]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]
    """,
    re.VERBOSE,
)


def _column_definitions(custom: CustomVersion) -> list[JsonObject]:
    """The columns of a table of custom objects."""
    definitions = [
        {
            "name": column["name"],
            "type": column.get("type", "string"),
            "format": column.get("format", ""),
            "description": column.get("description", ""),
            "priority": column.get("priority", 0),
        }
        for column in custom.columns or (_AGE,)
    ]
    return [*Printer("Name").column_definitions(), *definitions]


def _cells(custom: CustomVersion, item: JsonObject, now: float) -> list[Any]:
    """The cells of one custom object."""
    found: list[Any] = [name_of(item)]
    for column in custom.columns or (_AGE,):
        values = values_at(item, column["jsonPath"])
        found.append(_cell(values, column.get("type", "string"), now))
    return found


def _cell(values: list[Any], kind: str, now: float) -> Any:
    if not values or values[0] is None:
        return None
    first = values[0]
    if kind == "date":
        return time_since(first, now)
    if kind in _CELL_TYPES:
        return first if type(first) in _CELL_TYPES[kind] else None
    return " ".join(_text(each) for each in values)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else encode(value).decode()


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, str], ...] | None:
    """The steps of a JSON path; `None` if the path has other syntax."""
    text = path.strip().removeprefix("{").removesuffix("}")
    text = text if text.startswith((".", "[")) else f".{text}"
    steps: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return None
        kind = found.lastgroup or ""
        if kind == "value":
            steps.append((f"?{found['key']}", found["value"]))
        else:
            steps.append((kind, found[kind].replace("\\.", ".")))
        at = found.end()
    return tuple(steps)


def values_at(item: Any, path: str) -> list[Any]:
    """The values at a JSON path; none if the path leads nowhere."""
    steps = _steps(path)
    if steps is None:
        return []
    values = [item]
    for kind, argument in steps:
        values = [found for value in values for found in _step(value, kind, argument)]
    return values


def _step(value: Any, kind: str, argument: str) -> list[Any]:
    if kind in {"field", "quoted"}:
        return [value[argument]] if isinstance(value, dict) and argument in value else []
    if not isinstance(value, list):
        return list(value.values()) if kind == "all" and isinstance(value, dict) else []
    if kind == "all":
        return value
    if kind == "index":
        index = int(argument)
        return [value[index]] if -len(value) <= index < len(value) else []
    return [each for each in value if _at_key(each, kind[1:]) == argument]


def _at_key(value: Any, key: str) -> str:
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return _text(value) if value is not None else ""


#: The printer of kinds that declare none.
DEFAULT = Printer("Name, @Created At=metadata.creationTimestamp")


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
    return _table(printer.column_definitions(), rows)


def custom_table(
    custom: CustomVersion,
    objects: Sequence[JsonObject],
    *,
    include_object: str = "Metadata",
    now: float | None = None,
) -> JsonObject:
    """A `Table` of custom objects, with the columns of their definition."""
    at = time.time() if now is None else now
    rows: list[JsonObject] = [
        {"cells": _cells(custom, each, at), "object": _included(each, include_object)}
        for each in objects
    ]
    return _table(_column_definitions(custom), rows)


def _table(columns: list[JsonObject], rows: list[JsonObject]) -> JsonObject:
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns,
        "rows": rows,
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
