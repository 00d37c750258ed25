"""JSON patches (RFC 6902) between two versions of an object, and their application.

Only what edits of one object need: `add`, `replace` and `remove`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.errors import InputError
from podium.objects.field_errors import pointer, pointer_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Operation = dict[str, Any]


def difference(before: Any, after: Any, path: str = "") -> list[Operation]:
    """The operations that make *before* equal to *after*; items of a list keep their places."""
    return list(_operations(before, after, path))


def _operations(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() - after.keys():
            yield {"op": "remove", "path": pointer(path, key)}
        for key, value in after.items():
            where = pointer(path, key)
            if key not in before:
                yield {"op": "add", "path": where, "value": value}
            else:
                yield from _operations(before[key], value, where)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_operations(before, after, path)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _list_operations(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    if len(after) > len(before) and after[: len(before)] == before:
        for value in after[len(before) :]:
            yield {"op": "add", "path": f"{path}/-", "value": value}
    elif len(after) == len(before):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _operations(old, new, f"{path}/{index}")
    elif len(after) == len(before) - 1:
        gone = next((i for i, new in enumerate(after) if before[i] != new), len(after))
        yield {"op": "remove", "path": f"{path}/{gone}"}
        yield from _list_operations(before[:gone] + before[gone + 1 :], after, path)
    else:
        yield {"op": "replace", "path": path, "value": after}


def patched(document: Any, operations: Sequence[Operation]) -> Any:
    """A copy of the document after the operations, in order."""
    for operation in operations:
        document = _applied(document, pointer_keys(operation["path"]), operation)
    return document


def _applied(document: Any, keys: list[str], operation: Operation) -> Any:
    if not keys:
        return operation.get("value")
    first, *rest = keys
    if isinstance(document, list):
        items = list(document)
        if first == "-":
            return [*items, operation["value"]]
        place = int(first)
        if rest:
            items[place] = _applied(items[place], rest, operation)
        elif operation["op"] == "add":
            items.insert(place, operation["value"])
        elif operation["op"] == "remove":
            del items[place]
        else:
            items[place] = operation["value"]
        return items
    if not isinstance(document, dict) or (rest and first not in document):
        raise InputError(f"a patch names {operation['path']}, which is not there")
    fields = dict(document)
    if rest:
        fields[first] = _applied(fields[first], rest, operation)
    elif operation["op"] == "remove":
        del fields[first]
    else:
        fields[first] = operation["value"]
    return fields
