"""Server-side apply: who owns which field, and what follows from it.

Each writer of an object is a manager, known by its name, the operation (`Apply` or `Update`), the
version and the subresource it wrote through. `metadata.managedFields` has an entry for each, with
the fields it owns. Applying a configuration takes its fields over; a field that somebody else set
to another value is a conflict unless forced; a field that the manager applied before and no longer
applies goes away if nobody else owns it. Ordinary writes own what they changed.

Upstream: apimachinery/pkg/util/managedfields, sigs.k8s.io/structured-merge-diff.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from podium.lab.api.resources import TABLE
from podium.lab.api.status import JsonDict, StatusError, bad_request
from podium.lab.patch.apply_managers import Managers, Owner, read_managers, write_managers
from podium.lab.patch.apply_merging import Comparison, compare, in_order, merge, remove
from podium.lab.patch.apply_shapes import (
    EMPTY,
    UNKNOWN,
    FieldSet,
    Path,
    Shape,
    fields_of,
    kind_shape,
    path_text,
    undeclared,
    with_named_parents,
)
from podium.lab.patch.apply_zeros import with_zeros

APPLY, UPDATE = "Apply", "Update"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
_BEFORE_FIRST_APPLY = "before-first-apply"

_METADATA = """
    name namespace creationTimestamp selfLink uid clusterName generation managedFields
    resourceVersion
"""
#: Fields of every object that have no owner.
_NOBODYS: FieldSet = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [("f:metadata", f"f:{name}") for name in _METADATA.split()]
)


#: Kinds whose status is written through a path of its own, and by nothing else.
_WITH_STATUS = frozenset(each.kind for each in TABLE if "status" in each.subresources)


class _Conflict(NamedTuple):
    owner: Owner
    path: Path


class _ConflictsError(Exception):
    def __init__(self, conflicts: list[_Conflict]) -> None:
        super().__init__()
        self.conflicts = conflicts


def applied(
    kind: str,
    live: JsonDict | None,
    config: JsonDict,
    *,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
) -> JsonDict:
    """The object after applying a configuration to what is there, or to nothing."""
    if config.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    version = str(config.get("apiVersion", ""))
    shape = kind_shape(kind, version)
    wanted = _own_part(config, subresource)
    _refuse_undeclared(shape, wanted)
    held = _unmanaged(live or {})
    managers = _managers_of(live)
    if live and not managers:
        before = Owner(_BEFORE_FIRST_APPLY, UPDATE, version, "")
        managers[before] = (fields_of(shape, held) - _NOBODYS, "")
    owner = Owner(manager, APPLY, "", subresource)
    attempt = _Attempt(shape, held, wanted, owner, version)
    try:
        result, owned = attempt.run(managers, force=force)
    except _ConflictsError as error:
        left = _left_after_last_applied(shape, manager, held, error.conflicts)
        if left:
            raise _conflict_error(left) from None
        result, owned = attempt.run(managers, force=True)
    before_now = managers.get(owner, (EMPTY, ""))[1]
    time = now if result != held else before_now or now
    written = {each: (fields, managers.get(each, (EMPTY, ""))[1]) for each, fields in owned.items()}
    if owner in written:
        written[owner] = (written[owner][0], time)
    if manager == _KUBECTL:
        _renew_last_applied(held, result, config)
    return write_managers(result, written, {owner: version})


def tracked(
    kind: str,
    old: JsonDict | None,
    new: JsonDict,
    *,
    manager: str,
    operation: str = UPDATE,
    now: str,
    subresource: str = "",
) -> JsonDict:
    """The object of an ordinary write, with the writer as owner of what it changed."""
    sent = new.get("metadata", {}).get("managedFields")
    managers = _managers_of(new if sent is not None else old)
    result = _unmanaged(new)
    if old is not None and sent == []:
        return result  # the way to stop the tracking
    if old is not None and not managers:
        return result
    version = str(new.get("apiVersion", ""))
    shape = kind_shape(kind, version)
    zeroed_old, zeroed_new = with_zeros(kind, _unmanaged(old or {})), with_zeros(kind, result)
    changes = compare(shape, zeroed_old, zeroed_new)
    if not changes:
        return write_managers(result, managers, {})
    owner = Owner(manager, operation, version, subresource)
    changed = frozenset(changes.modified | changes.added)
    if not subresource and kind in _WITH_STATUS:
        changed = frozenset(path for path in changed if path[0] != "f:status")
    gone = changed | changes.removed
    kept = {
        each: (fields - (gone if each != owner else changes.removed), time)
        for each, (fields, time) in managers.items()
    }
    own = (changed - _NOBODYS) | kept.get(owner, (EMPTY, ""))[0]
    if changed - _NOBODYS:
        kept[owner] = (own, now)
    return write_managers(result, kept, {})


class _Attempt(NamedTuple):
    """One configuration, ready to be applied."""

    shape: Shape
    live: JsonDict
    config: JsonDict
    owner: Owner
    version: str

    def run(self, managers: Managers, *, force: bool) -> tuple[JsonDict, dict[Owner, FieldSet]]:
        """The new object, and what each owns then."""
        owned = {each: fields for each, (fields, _) in managers.items()}
        merged = merge(self.shape, copy.deepcopy(self.live), copy.deepcopy(self.config))
        last = owned.get(self.owner, EMPTY)
        owned[self.owner] = fields_of(self.shape, self.config)
        result = self._pruned(merged, owned, last)
        changes = compare(self.shape, self.live, result)
        owned = self._settled(owned, changes, force=force)
        owned[self.owner] = owned.get(self.owner, EMPTY) - _NOBODYS
        return result, {each: fields for each, fields in owned.items() if fields}

    def _pruned(
        self, merged: JsonDict, owned: Mapping[Owner, FieldSet], last: FieldSet
    ) -> JsonDict:
        """Without what this manager applied before, applies no longer, and nobody else owns."""
        if not last:
            return merged
        shape = self.shape
        everybody = frozenset().union(*owned.values())
        whole = with_named_parents(shape, fields_of(shape, merged))
        named_last = with_named_parents(shape, last)
        without = remove(shape, merged, named_last)
        left = with_named_parents(shape, fields_of(shape, without))
        goes = whole - (left | with_named_parents(shape, everybody))
        without = remove(shape, merged, goes)
        left = with_named_parents(shape, fields_of(shape, without))
        return remove(shape, merged, (whole - left) & named_last)

    def _settled(
        self, owned: Mapping[Owner, FieldSet], changes: Comparison, *, force: bool
    ) -> dict[Owner, FieldSet]:
        taken = frozenset(changes.modified | changes.added)
        lost = {each: fields & taken for each, fields in owned.items() if each != self.owner}
        lost = {each: fields for each, fields in lost.items() if fields}
        if lost and not force:
            listed = [
                _Conflict(each, path) for each in sorted(lost) for path in in_order(lost[each])
            ]
            raise _ConflictsError(listed)
        gone = taken | changes.removed
        return {
            each: fields - gone if each != self.owner else fields for each, fields in owned.items()
        }


def _own_part(config: JsonDict, subresource: str) -> JsonDict:
    """What may be written here: the status through its own path, and the rest not through it."""
    dropped = "spec" if subresource == "status" else "status"
    return {key: value for key, value in config.items() if key != dropped}


def _unmanaged(object_: JsonDict) -> JsonDict:
    metadata = object_.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return object_
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**object_, "metadata": kept}


def _managers_of(object_: JsonDict | None) -> Managers:
    metadata = (object_ or {}).get("metadata") or {}
    return read_managers(metadata.get("managedFields") or [])


def _refuse_undeclared(shape: Shape, config: JsonDict) -> None:
    """Refuse fields that the type does not have, and items that cannot be told apart."""
    if shape.kind == UNKNOWN:
        return
    try:
        unknown = next(undeclared(shape, config), None)
        if unknown is not None:
            raise bad_request(f"{path_text(unknown)}: field not declared in schema")
        merge(shape, {}, config)
    except StatusError as error:
        metadata, version = config.get("metadata") or {}, config.get("apiVersion")
        named = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        about = f"{named}; {version}, Kind={config.get('kind')}"
        raise bad_request(f"failed to create typed patch object ({about}): {error}") from None


def _left_after_last_applied(
    shape: Shape, manager: str, live: JsonDict, conflicts: list[_Conflict]
) -> list[_Conflict]:
    """The conflicts that are not with what `kubectl apply` itself wrote before."""
    said = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    if manager != _KUBECTL or not said:
        return conflicts
    try:
        before = json.loads(said)
    except ValueError:
        return conflicts
    if not isinstance(before, dict) or before.get("apiVersion") != live.get("apiVersion"):
        return conflicts
    changes = compare(shape, before, live)
    same = fields_of(shape, before) - changes.modified - changes.added - changes.removed
    return [conflict for conflict in conflicts if conflict.path not in same]


def _renew_last_applied(live: JsonDict, result: JsonDict, config: JsonDict) -> None:
    """Whoever goes back to applying on the client's side starts from this configuration."""
    if LAST_APPLIED not in (live.get("metadata", {}).get("annotations") or {}):
        return
    plain = copy.deepcopy(config)
    plain.get("metadata", {}).get("annotations", {}).pop(LAST_APPLIED, None)
    annotations = result.setdefault("metadata", {}).setdefault("annotations", {})
    annotations[LAST_APPLIED] = json.dumps(plain, separators=(",", ":"), sort_keys=True) + "\n"


def _conflict_error(conflicts: list[_Conflict]) -> StatusError:
    causes: list[Any] = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {conflict.owner.described()}",
            "field": path_text(conflict.path),
        }
        for conflict in conflicts
    ]
    if len(conflicts) == 1:
        only = conflicts[0]
        what = f"1 conflict: conflict with {only.owner.described()}: {path_text(only.path)}"
    else:
        lines = []
        for owner in dict.fromkeys(conflict.owner for conflict in conflicts):
            lines.append(f"conflicts with {owner.described()}:")
            lines += [f"- {path_text(each.path)}" for each in conflicts if each.owner == owner]
        what = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {what}", details={"causes": causes})
