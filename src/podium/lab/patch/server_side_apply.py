"""Server-side apply: which manager owns which field, and what follows from it.

Each writer of an object is a manager, known by its name, the operation (`Apply` or `Update`), the
version and the subresource it wrote through. `metadata.managedFields` has an entry for each, with
the fields it owns. Applying a configuration takes ownership of its fields. A field that another
manager set to another value is a conflict unless forced. A field that the manager applied before
and no longer applies is removed if no other manager owns it. Ordinary writes own the fields that
they changed.

Upstream: apimachinery/pkg/util/managedfields, sigs.k8s.io/structured-merge-diff.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podium.lab.api.resources import TABLE
from podium.lab.api.status import StatusError, bad_request
from podium.lab.patch.structured_merge import (
    EMPTY,
    UNKNOWN,
    FieldComparison,
    FieldSchema,
    FieldSet,
    Path,
    compare,
    field_tree,
    fields_of,
    kind_schema,
    merge,
    path_text,
    remove,
    sorted_fields,
    undeclared,
    with_declared_parents,
)
from podium.objects.kinds.meta import JsonObject

APPLY, UPDATE = "Apply", "Update"
#: The most managers that update; beyond that the oldest are merged into one.
_MOST_UPDATERS = 10
_MERGED_UPDATERS = "ancient-changes"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
_BEFORE_FIRST_APPLY = "before-first-apply"

_METADATA = """
    name namespace creationTimestamp selfLink uid clusterName generation managedFields
    resourceVersion
"""
#: Fields that no manager owns.
_UNOWNED: FieldSet = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [("f:metadata", f"f:{name}") for name in _METADATA.split()]
)
#: Kinds whose status is written through its subresource only.
_WITH_STATUS = frozenset(each.kind for each in TABLE if "status" in each.subresources)


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
    except (ValueError, RecursionError):
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


def apply(
    kind: str,
    live: JsonObject | None,
    config: JsonObject,
    *,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
    custom: FieldSchema | None = None,
) -> JsonObject:
    """The object after applying *config* to *live*, or to nothing.

    *custom* is the schema of a kind that is not one of the API's own.
    """
    if config.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    version = str(config.get("apiVersion", ""))
    schema = custom or kind_schema(kind, version)
    applied = _writable_part(config, subresource)
    _reject_undeclared(schema, applied)
    current = without_managed_fields(live or {})
    managers = read_managers(live)
    if live and not managers:
        before = Manager(_BEFORE_FIRST_APPLY, UPDATE, version, "")
        managers[before] = Owned(fields_of(schema, current) - _UNOWNED)
    applier = Manager(manager, APPLY, "", subresource)
    application = _Application(schema, current, applied, applier)
    try:
        result, owned = application.run(managers, force=force)
    except _ConflictsError as error:
        conflicts = _without_own_last_applied(schema, manager, current, error.conflicts)
        if conflicts:
            raise _conflict_error(conflicts) from None
        result, owned = application.run(managers, force=True)
    written = {
        each: Owned(fields, managers.get(each, Owned()).time) for each, fields in owned.items()
    }
    if applier in written:
        last_time = managers.get(applier, Owned()).time
        time = now if result != current else last_time or now
        written[applier] = Owned(written[applier].fields, time)
    if manager == _KUBECTL:
        _update_last_applied(current, result, config)
    return with_managers(result, written)


def track_update(
    kind: str,
    old: JsonObject | None,
    new: JsonObject,
    *,
    manager: str,
    operation: str = UPDATE,
    now: str,
    subresource: str = "",
    custom: FieldSchema | None = None,
    custom_status: bool = False,
) -> JsonObject:
    """The object of an ordinary write, with *manager* as owner of the fields that it changed.

    *custom* is the schema of a kind that is not one of the API's own, and *custom_status* whether
    its status is written through a subresource only.
    """
    sent = new.get("metadata", {}).get("managedFields")
    managers = read_managers(new if sent is not None else old)
    result = without_managed_fields(new)
    if old is not None and (sent == [] or not managers):
        # The client sent an empty list to end the tracking, or the object was never tracked.
        return result
    version = str(new.get("apiVersion", ""))
    own_kind = kind if custom is None else ""
    schema = custom or kind_schema(kind, version)
    before = _with_zero_values(own_kind, without_managed_fields(old or {}))
    changes = compare(schema, before, _with_zero_values(own_kind, result))
    if not changes:
        return with_managers(result, managers)
    updater = Manager(manager, operation, version, subresource)
    changed = frozenset(changes.modified | changes.added)
    if not subresource and (custom_status or own_kind in _WITH_STATUS):
        changed = frozenset(path for path in changed if path[0] != "f:status")
    taken = changed | changes.removed
    owned = {
        each: Owned(fields - (taken if each != updater else changes.removed), time)
        for each, (fields, time) in managers.items()
    }
    if changed - _UNOWNED:
        own_fields = (changed - _UNOWNED) | owned.get(updater, Owned()).fields
        owned[updater] = Owned(own_fields, now)
    return with_managers(result, owned)


class _Conflict(NamedTuple):
    manager: Manager
    path: Path


class _ConflictsError(Exception):
    def __init__(self, conflicts: list[_Conflict]) -> None:
        super().__init__()
        self.conflicts = conflicts


class _Application(NamedTuple):
    """A configuration, and the live object and manager that it is applied with."""

    schema: FieldSchema
    live: JsonObject
    config: JsonObject
    applier: Manager

    def run(self, managers: Managers, *, force: bool) -> tuple[JsonObject, dict[Manager, FieldSet]]:
        """The new object, and the fields of each manager; raises conflicts unless *force*."""
        owned = {each: fields for each, (fields, _) in managers.items()}
        merged = merge(self.schema, copy.deepcopy(self.live), copy.deepcopy(self.config))
        last = owned.get(self.applier, EMPTY)
        owned[self.applier] = fields_of(self.schema, self.config)
        result = self._pruned(merged, owned, last)
        changes = compare(self.schema, self.live, result)
        owned = self._without_taken(owned, changes, force=force)
        owned[self.applier] = owned.get(self.applier, EMPTY) - _UNOWNED
        return result, {each: fields for each, fields in owned.items() if fields}

    def _pruned(
        self, merged: JsonObject, owned: Mapping[Manager, FieldSet], last: FieldSet
    ) -> JsonObject:
        """The object without fields that the manager applied last and that have no owner now."""
        if not last:
            return merged
        schema = self.schema
        all_owned = frozenset().union(*owned.values())
        whole = with_declared_parents(schema, fields_of(schema, merged))
        applied_last = with_declared_parents(schema, last)
        without = remove(schema, merged, applied_last)
        left = with_declared_parents(schema, fields_of(schema, without))
        unowned = whole - (left | with_declared_parents(schema, all_owned))
        without = remove(schema, merged, unowned)
        left = with_declared_parents(schema, fields_of(schema, without))
        return remove(schema, merged, (whole - left) & applied_last)

    def _without_taken(
        self, owned: Mapping[Manager, FieldSet], changes: FieldComparison, *, force: bool
    ) -> dict[Manager, FieldSet]:
        """The fields of each manager without those that the applier changes or removes."""
        taken = frozenset(changes.modified | changes.added)
        lost = {each: fields & taken for each, fields in owned.items() if each != self.applier}
        lost = {each: fields for each, fields in lost.items() if fields}
        if lost and not force:
            raise _ConflictsError(
                [
                    _Conflict(each, path)
                    for each in sorted(lost)
                    for path in sorted_fields(lost[each])
                ]
            )
        taken |= changes.removed
        return {
            each: fields - taken if each != self.applier else fields
            for each, fields in owned.items()
        }


def _writable_part(config: JsonObject, subresource: str) -> JsonObject:
    """What the path writes: `status` writes no spec, and other paths write no status."""
    dropped = "spec" if subresource == "status" else "status"
    return {key: value for key, value in config.items() if key != dropped}


def _reject_undeclared(schema: FieldSchema, config: JsonObject) -> None:
    """Raise 400 for fields that the type does not have, and for items that are duplicates."""
    if schema.kind == UNKNOWN:
        return
    try:
        unknown = next(undeclared(schema, config), None)
        if unknown is not None:
            raise bad_request(f"{path_text(unknown)}: field not declared in schema")
        merge(schema, {}, config)
    except StatusError as error:
        metadata, version = config.get("metadata") or {}, config.get("apiVersion")
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        about = f"{name}; {version}, Kind={config.get('kind')}"
        raise bad_request(f"failed to create typed patch object ({about}): {error}") from None


def _without_own_last_applied(
    schema: FieldSchema, manager: str, live: JsonObject, conflicts: list[_Conflict]
) -> list[_Conflict]:
    """The conflicts without those with what client-side `kubectl apply` wrote before."""
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    if manager != _KUBECTL or not text:
        return conflicts
    try:
        before = json.loads(text)
    except (ValueError, RecursionError):
        return conflicts
    if not isinstance(before, dict) or before.get("apiVersion") != live.get("apiVersion"):
        return conflicts
    changes = compare(schema, before, live)
    unchanged = fields_of(schema, before) - changes.modified - changes.added - changes.removed
    return [conflict for conflict in conflicts if conflict.path not in unchanged]


def _update_last_applied(live: JsonObject, result: JsonObject, config: JsonObject) -> None:
    """Keep the annotation of client-side apply up to date, so that a user can return to it."""
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
            "message": f"conflict with {manager.description()}",
            "field": path_text(path),
        }
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        [(manager, path)] = conflicts
        message = f"1 conflict: conflict with {manager.description()}: {path_text(path)}"
    else:
        lines = []
        for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
            lines.append(f"conflicts with {manager.description()}:")
            lines += [f"- {path_text(each.path)}" for each in conflicts if each.manager == manager]
        message = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {message}", details={"causes": causes})


# Fields that are no pointers in the Go types: every object has them, even if they are empty, so a
# write that adds one of them empty changes nothing and owns nothing.
_POD_SPEC: JsonObject = {"containers": None}
_ZERO_METADATA: JsonObject = {"creationTimestamp": None}
_TEMPLATE: JsonObject = {"metadata": _ZERO_METADATA, "spec": _POD_SPEC}
_EVERY_KIND: JsonObject = {"metadata": _ZERO_METADATA}

_ZERO_VALUES: Mapping[str, JsonObject] = {
    "CronJob": {
        "spec": {"jobTemplate": {"metadata": _ZERO_METADATA, "spec": {"template": _TEMPLATE}}},
        "status": {},
    },
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": None}},
    "DaemonSet": {
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {},
    },
    "Deployment": {
        "spec": {"selector": None, "template": _TEMPLATE, "strategy": {}},
        "status": {},
    },
    "Event": {
        "involvedObject": {},
        "source": {},
        "eventTime": None,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "Job": {"spec": {"template": _TEMPLATE}, "status": {}},
    "Lease": {"spec": {}},
    "LimitRange": {"spec": {"limits": None}},
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {}}, "nodeInfo": {}}},
    "PersistentVolume": {"spec": {}, "status": {}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Pod": {"spec": _POD_SPEC, "status": {}},
    "PodDisruptionBudget": {"spec": {}, "status": {}},
    "PodTemplate": {"template": _TEMPLATE},
    "ReplicaSet": {"spec": {"selector": None, "template": _TEMPLATE}, "status": {}},
    "ReplicationController": {"spec": {}, "status": {}},
    "ResourceQuota": {"spec": {}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "StatefulSet": {
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {},
    },
    "VolumeAttachment": {"spec": {"source": {}}, "status": {}},
}


def _with_zero_values(kind: str, item: JsonObject) -> JsonObject:
    """The object with the fields that every object of its kind has."""
    return _filled(_filled(item, _EVERY_KIND), _ZERO_VALUES.get(kind, {}))


def _filled(value: JsonObject, zero: JsonObject) -> JsonObject:
    result = dict(value)
    for key, zero_value in zero.items():
        own = value.get(key)
        if own is None:
            result[key] = zero_value
        elif isinstance(zero_value, dict) and isinstance(own, dict):
            result[key] = _filled(own, zero_value)
    return result
