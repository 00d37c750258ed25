"""The declaration of a kind's table: its columns, and the cells of its objects.

Columns are written as one text, separated by commas. A mark may precede the name of a column: `#`
for numbers, `?` for booleans, `@` for times, and `*` for priority 1, which kubectl prints with
`-o wide` only. A row always has the cells of all columns.

Upstream: pkg/printers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.objects.kinds.meta import JsonObject

#: The cells of an object at a time in seconds since 1970.
Cells = Callable[[JsonObject, float], list[Any]]

_TYPES = {"#": "integer", "?": "boolean", "@": "date"}
_DESCRIPTIONS = {
    "Name": "Name must be unique within a namespace.",
    "Age": "The time since the object was created.",
    "Status": "The state of the object in a word.",
}


def _no_conditions(_item: JsonObject) -> list[JsonObject]:
    return []


def _unchanged(_items: Sequence[JsonObject], _rows: Sequence[JsonObject]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of a kind become rows."""

    columns: str
    cells: Cells
    #: The conditions of the row of an object.
    conditions: Callable[[JsonObject], list[JsonObject]] = _no_conditions
    #: Changes rows that depend on the other objects of the table.
    finish: Callable[[Sequence[JsonObject], Sequence[JsonObject]], None] = _unchanged

    def column_definitions(self) -> list[JsonObject]:
        """The columns as a `Table` defines them."""
        return [_column_definition(word) for word in self.columns.split(", ")]


def _column_definition(word: str) -> JsonObject:
    mark, name = word[0], word.lstrip("*#?@")
    return {
        "name": name,
        "type": _TYPES.get(mark, "string"),
        "format": "name" if name in ("Name", "Attacher") else "",
        "description": _DESCRIPTIONS.get(name, name),
        "priority": 1 if mark == "*" else 0,
    }
