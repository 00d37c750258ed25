"""Deletion of objects: preconditions, grace period, finalizers and propagation.

An object is removed at once unless it has finalizers or is a pod on a node. Such an object gets a
deletion timestamp, and is removed with its last finalizer or when the kubelet has stopped the pod.

Upstream: apiserver/pkg/registry/rest/delete.go, registry/generic/registry/store.go, and the
strategy of pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.encoding import format_time
from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import conflict, not_found
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


def delete(
    registry: Registry, resource: Resource, key: Key, options: DeleteOptions
) -> tuple[JsonObject, bool]:
    """Start the deletion of an object; returns its last state, and whether it is removed."""
    record = registry.store.get(resource.storage, key)
    if record is None:
        raise not_found(resource.qualified, key.name)
    old = record.object()
    _check_preconditions(resource, old, options)
    item = record.object()
    metadata = item["metadata"]
    _set_propagation(metadata, options)
    grace = _grace_period(resource, item, options)
    if metadata.get("deletionTimestamp"):
        _shorten_grace_period(registry, metadata, grace)
    else:
        _mark_terminating(registry, metadata, grace)
    if resource.kind == "Namespace":
        item.setdefault("status", {})["phase"] = "Terminating"
    gone = is_removable(item)
    if options.dry_run:
        return item, gone
    if gone:
        return registry.erase(resource, item, old), True
    if item != old:
        registry.write(resource, item, old)
    return item, False


def is_removable(item: JsonObject) -> bool:
    """Whether a terminating object has no finalizer and no grace period left."""
    metadata = item["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if (item.get("kind") == "Namespace") and (item.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _check_preconditions(resource: Resource, old: JsonObject, options: DeleteOptions) -> None:
    metadata = old["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        raise conflict(
            resource.kind,
            metadata["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated",
        )
    if options.version and options.version != metadata["resourceVersion"]:
        raise conflict(
            resource.kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). "
            "The object might have been modified",
        )


def _set_propagation(metadata: JsonObject, options: DeleteOptions) -> None:
    """Replace the finalizers `orphan` and `foregroundDeletion` by that of the options."""
    if not options.propagation:
        return
    wanted = _FINALIZERS.get(options.propagation)
    kept = [each for each in metadata.get("finalizers") or () if each not in _FINALIZERS.values()]
    finalizers = [*kept, wanted] if wanted else kept
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _grace_period(resource: Resource, item: JsonObject, options: DeleteOptions) -> int:
    """The grace period in seconds: 0 for all objects but unfinished pods on a node."""
    if resource.kind != "Pod":
        return 0
    spec = item["spec"]
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds")
        grace = 30 if grace is None else grace
    if not spec.get("nodeName"):
        return 0
    if (item.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    return grace if grace >= 0 else 1


def _mark_terminating(registry: Registry, metadata: JsonObject, grace: int) -> None:
    metadata["deletionTimestamp"] = format_time(registry.clock() + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1


def _shorten_grace_period(registry: Registry, metadata: JsonObject, grace: int) -> None:
    """Apply the grace period of a second deletion if it is shorter."""
    if grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = format_time(registry.clock() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
