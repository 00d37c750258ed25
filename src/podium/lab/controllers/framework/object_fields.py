"""Fields of plain API objects: keys, labels, owners, finalizers, conditions."""

from __future__ import annotations

from math import ceil, floor
from typing import Any, Final, NamedTuple

from podium.objects.kinds.meta import JsonObject

#: Namespace, empty for objects of the cluster, and name.
Key = tuple[str, str]

_NO_CONDITION: Final[JsonObject] = {}


class ObjectPlace(NamedTuple):
    """The kind and the key of an object, which another object may have later."""

    kind: str
    key: Key


def key_of(item: JsonObject) -> Key:
    """The namespace and name of an object."""
    metadata = item["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def uid_of(item: JsonObject) -> str:
    """The uid of an object; empty if it has none."""
    return str(item["metadata"].get("uid", ""))


def labels_of(item: JsonObject) -> dict[str, str]:
    """The labels of an object."""
    return item["metadata"].get("labels") or {}


def annotation(item: JsonObject, name: str) -> str:
    """The value of an annotation; empty if it is not set."""
    return str((item["metadata"].get("annotations") or {}).get(name, ""))


def is_terminating(item: JsonObject) -> bool:
    """Whether the object has a deletion timestamp."""
    return "deletionTimestamp" in item["metadata"]


def replicas_of(item: JsonObject) -> int:
    """The replicas in the spec of a workload; 1 by default."""
    replicas = item["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def condition(item: JsonObject, kind: str) -> JsonObject:
    """The status condition of this type; empty if there is none."""
    for each in (item.get("status") or _NO_CONDITION).get("conditions") or ():
        if each.get("type") == kind:
            found: JsonObject = each
            return found
    return _NO_CONDITION


def new_condition(
    before: JsonObject, kind: str, status: str, reason: str, message: str, *, at: str
) -> JsonObject:
    """A condition of the time *at*; while its status stays, it keeps the time of *before*."""
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or at,
        "reason": reason,
        "message": message,
    }


def controller_of(item: JsonObject) -> JsonObject | None:
    """The owner reference of the managing controller."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: JsonObject = reference
            return found
    return None


def remove_owner(item: JsonObject, uid: str) -> None:
    """Remove the owner references with this uid from an object."""
    metadata = item["metadata"]
    kept = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != uid]
    metadata["ownerReferences"] = kept
    if not kept:
        del metadata["ownerReferences"]


def remove_finalizer(holder: JsonObject, finalizer: str) -> None:
    """Remove a finalizer from the metadata of an object, or from the spec of a namespace."""
    kept = [each for each in holder.get("finalizers") or () if each != finalizer]
    holder["finalizers"] = kept
    if not kept:
        del holder["finalizers"]


def int_or_percent(value: Any, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of *total*, as in `maxUnavailable`."""
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * total / 100
        return ceil(share) if round_up else floor(share)
    return int(value)
