"""Reading fields of objects that may lack any of them."""

from __future__ import annotations

from typing import Any

from podium.objects.kinds.meta import JsonObject


def object_at(item: Any, *path: str) -> JsonObject:
    """The object at a path, empty if there is none."""
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    return item if isinstance(item, dict) else {}


def list_at(item: Any, *path: str) -> list[Any]:
    """The list at a path, empty if there is none."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def number_at(item: JsonObject, *path: str) -> int:
    """The integer at a path, 0 if there is none."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else 0


def text_at(item: JsonObject, *path: str, default: str = "") -> str:
    """The value at a path as text, *default* if there is none or if it is empty."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return default if found is None or found == "" else str(found)


def metadata_of(item: JsonObject) -> JsonObject:
    """The metadata of an object, empty if it has none."""
    return object_at(item, "metadata")


def name_of(item: JsonObject) -> str:
    """The name of an object, empty if it has none."""
    return text_at(item, "metadata", "name")


def condition_status(item: JsonObject, condition_type: str) -> str:
    """The status of the condition of this type, empty if there is none."""
    for each in list_at(item, "status", "conditions"):
        if each.get("type") == condition_type:
            return str(each.get("status", ""))
    return ""
