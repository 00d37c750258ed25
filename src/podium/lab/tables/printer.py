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

from podium.lab.api.status import JsonDict

#: The cells of an object at a time in seconds since 1970.
Cells = Callable[[JsonDict, float], list[Any]]

_TYPES = {"#": "integer", "?": "boolean", "@": "date"}
_DESCRIPTIONS = {
    "Name": "Name must be unique within a namespace.",
    "Age": "The time since the object was created.",
    "Status": "The state of the object in a word.",
}


def _no_conditions(_item: JsonDict) -> list[JsonDict]:
    return []


def _unchanged(_items: Sequence[JsonDict], _rows: Sequence[JsonDict]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of a kind become rows."""

    columns: str
    cells: Cells
    #: The conditions of the row of an object.
    conditions: Callable[[JsonDict], list[JsonDict]] = _no_conditions
    #: Changes rows that depend on the other objects of the table.
    finish: Callable[[Sequence[JsonDict], Sequence[JsonDict]], None] = _unchanged

    def column_definitions(self) -> list[JsonDict]:
        """The columns as a `Table` defines them."""
        return [_column_definition(word) for word in self.columns.split(", ")]


def _column_definition(word: str) -> JsonDict:
    mark, name = word[0], word.lstrip("*#?@")
    return {
        "name": name,
        "type": _TYPES.get(mark, "string"),
        "format": "name" if name in ("Name", "Attacher") else "",
        "description": _DESCRIPTIONS.get(name, name),
        "priority": 1 if mark == "*" else 0,
    }
