"""`metadata.managedFields`: the owners of an object's fields as it is written in the object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podium.lab.api.status import JsonDict
from podium.lab.patch.apply_merging import trie_of
from podium.lab.patch.apply_shapes import FieldSet, Path

_APPLY = "Apply"
#: More updaters than these are merged, the oldest first.
_MOST_UPDATERS = 10
_ANCIENT = "ancient-changes"


class Owner(NamedTuple):
    """Who owns fields: for those who apply, the version does not matter."""

    manager: str
    operation: str
    version: str
    subresource: str

    def described(self) -> str:
        """The owner as a conflict names it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.operation == _APPLY else f"{text} using {self.version}"


#: The fields of each owner, and when it last wrote.
Managers = dict[Owner, tuple[FieldSet, str]]


def read_managers(entries: list[Any]) -> Managers:
    """The owners of an object; entries that make no sense are left out."""
    found: Managers = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in (_APPLY, "Update"):
            continue
        applies = entry["operation"] == _APPLY
        version = "" if applies else str(entry.get("apiVersion", ""))
        owner = Owner(
            str(entry.get("manager", "")),
            entry["operation"],
            version,
            str(entry.get("subresource", "")),
        )
        fields = frozenset(_members(entry.get("fieldsV1") or {}, ()))
        found[owner] = (fields, str(entry.get("time") or ""))
    return found


def _members(node: Any, path: Path) -> Iterator[Path]:
    if not isinstance(node, dict):
        return
    for step, below in node.items():
        if step == ".":
            if path:
                yield path
        elif _is_step(step):
            if below == {}:
                yield (*path, step)
            else:
                yield from _members(below, (*path, step))


def _is_step(step: str) -> bool:
    kind, text = step[:2], step[2:]
    if kind not in ("k:", "v:"):
        return kind in ("f:", "i:")
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return kind == "v:" or isinstance(found, dict)


def write_managers(
    object_: JsonDict, managers: Managers, versions: Mapping[Owner, str]
) -> JsonDict:
    """The object with its owners; *versions* of those who apply are those they wrote in."""
    version = str(object_.get("apiVersion", ""))
    kept = {owner: held for owner, held in managers.items() if held[0]}
    entries = [
        _entry(owner, fields, time, owner.version or versions.get(owner, version))
        for owner, (fields, time) in _capped(kept).items()
    ]
    entries.sort(key=lambda each: (each["operation"], each.get("time", ""), each["manager"]))
    metadata = dict(object_.get("metadata") or {})
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries
    return {**object_, "metadata": metadata}


def _capped(managers: Managers) -> Managers:
    """At most ten updaters: beyond that, the oldest become one."""
    updaters = [owner for owner in managers if owner.operation != _APPLY]
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    updaters.sort(key=lambda owner: (managers[owner][1], owner))
    oldest = updaters[: len(updaters) - _MOST_UPDATERS + 1]
    result = {owner: held for owner, held in managers.items() if owner not in oldest}
    fields: FieldSet = frozenset().union(*(managers[owner][0] for owner in oldest))
    bucket = Owner(_ANCIENT, "Update", oldest[-1].version, "")
    result[bucket] = (fields, managers[oldest[-1]][1])
    return result


def _entry(owner: Owner, fields: FieldSet, time: str, version: str) -> JsonDict:
    entry: JsonDict = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": version,
    }
    if time:
        entry["time"] = time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": _written(trie_of(fields))}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _written(node: JsonDict) -> JsonDict:
    """A member without members below it is empty."""
    below = {step: _written(each) for step, each in node.items() if step != "."}
    return {".": {}, **below} if below and "." in node else below
