"""`metadata.managedFields`: the managers of an object and the fields that each of them owns.

Upstream: apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from podium.lab.patch.structured_merge import EMPTY, FieldSet, Path, field_tree
from podium.objects.kinds.meta import JsonObject

APPLY, UPDATE = "Apply", "Update"
#: The most managers that update; beyond that the oldest are merged into one.
_MOST_UPDATERS = 10
_MERGED_UPDATERS = "ancient-changes"


class Manager(NamedTuple):
    """A writer of an object; the *version* of one that applies is empty."""

    name: str
    operation: str
    version: str
    subresource: str

    def description(self) -> str:
        """The manager as a conflict names it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.operation == APPLY else f"{text} using {self.version}"


class Owned(NamedTuple):
    """The fields that a manager owns, and when it last wrote."""

    fields: FieldSet = EMPTY
    time: str = ""


Managers = dict[Manager, Owned]


def read_managers(item: JsonObject | None) -> Managers:
    """The managers of an object; malformed entries are left out."""
    found: Managers = {}
    for entry in ((item or {}).get("metadata") or {}).get("managedFields") or []:
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            continue
        operation = entry["operation"]
        version = "" if operation == APPLY else str(entry.get("apiVersion", ""))
        name, subresource = str(entry.get("manager", "")), str(entry.get("subresource", ""))
        fields = frozenset(_read_fields(entry.get("fieldsV1") or {}, ()))
        manager = Manager(name, operation, version, subresource)
        found[manager] = Owned(fields, str(entry.get("time") or ""))
    return found


def _read_fields(node: Any, path: Path) -> Iterator[Path]:
    if not isinstance(node, dict):
        return
    for element, child in node.items():
        if element == ".":
            if path:
                yield path
        elif _is_path_element(element):
            if child == {}:
                yield (*path, element)
            else:
                yield from _read_fields(child, (*path, element))


def _is_path_element(element: str) -> bool:
    kind, text = element[:2], element[2:]
    if kind not in ("k:", "v:"):
        return kind in ("f:", "i:")
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return kind == "v:" or isinstance(found, dict)


def without_managed_fields(item: JsonObject) -> JsonObject:
    """The object without `metadata.managedFields`."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return item
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**item, "metadata": kept}


def with_managers(item: JsonObject, managers: Managers) -> JsonObject:
    """The object with *managers* as its `metadata.managedFields`."""
    version = str(item.get("apiVersion", ""))
    owning = {manager: owned for manager, owned in managers.items() if owned.fields}
    entries = [
        _entry(manager, owned, manager.version or version)
        for manager, owned in _limited(owning).items()
    ]
    entries.sort(key=lambda each: (each["operation"], each.get("time", ""), each["manager"]))
    metadata = dict(item.get("metadata") or {})
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries
    return {**item, "metadata": metadata}


def _limited(managers: Managers) -> Managers:
    """The managers with the oldest updaters merged into one if there are too many."""
    updaters = [manager for manager in managers if manager.operation != APPLY]
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    updaters.sort(key=lambda manager: (managers[manager].time, manager))
    oldest = updaters[: len(updaters) - _MOST_UPDATERS + 1]
    result = {manager: owned for manager, owned in managers.items() if manager not in oldest}
    fields: FieldSet = frozenset().union(*(managers[manager].fields for manager in oldest))
    merged = Manager(_MERGED_UPDATERS, UPDATE, oldest[-1].version, "")
    result[merged] = Owned(fields, managers[oldest[-1]].time)
    return result


def _entry(manager: Manager, owned: Owned, version: str) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": version,
    }
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": _fields_v1(field_tree(owned.fields))}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _fields_v1(node: JsonObject) -> JsonObject:
    """A tree of fields with `.` only where a member has members below it."""
    children = {element: _fields_v1(each) for element, each in node.items() if element != "."}
    return {".": {}, **children} if children and "." in node else children
