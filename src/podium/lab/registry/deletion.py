"""Deleting: preconditions, grace, finalizers, what becomes of those an object owned.

An object goes at once unless it has finalizers or is a pod that a node still has to stop. In those
cases it is marked, and goes when the last finalizer is taken away or the node is done.

Upstream: apiserver/pkg/registry/rest/delete.go, registry/generic/registry/store.go, and the
strategy of pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, conflict, not_found
from podium.lab.registry.metadata import stamp
from podium.lab.store.store import Key

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_PROPAGATION = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


def delete(
    registry: Registry, row: Resource, key: Key, options: DeleteOptions
) -> tuple[JsonDict, bool]:
    """The object as it is now, or was at last, and whether it is gone."""
    record = registry.store.get(row.storage, key)
    if record is None:
        raise not_found(row.qualified, key.name)
    old = record.object()
    _check(row, old, options)
    item = record.object()
    about = item["metadata"]
    _propagate(about, options)
    grace = _grace(row, item, options)
    if about.get("deletionTimestamp"):
        _hasten(registry, about, grace)
    else:
        _mark(registry, about, grace)
    if row.kind == "Namespace":
        item.setdefault("status", {})["phase"] = "Terminating"
    gone = is_over(item)
    if options.dry_run:
        return item, gone
    if gone:
        return registry.erase(row, item, old), True
    if item != old:
        registry.write(row, item, old)
    return item, False


def is_over(item: JsonDict) -> bool:
    """Whether nothing keeps a marked object any longer."""
    about = item["metadata"]
    if not about.get("deletionTimestamp") or about.get("finalizers"):
        return False
    if (item.get("kind") == "Namespace") and (item.get("spec") or {}).get("finalizers"):
        return False
    return not about.get("deletionGracePeriodSeconds")


def _check(row: Resource, old: JsonDict, options: DeleteOptions) -> None:
    about = old["metadata"]
    if options.uid and options.uid != about["uid"]:
        raise conflict(
            row.kind,
            about["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({about['uid']}). The object might have been deleted and then recreated",
        )
    if options.version and options.version != about["resourceVersion"]:
        raise conflict(
            row.kind,
            about["name"],
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({about['resourceVersion']}). The object might have been "
            "modified",
        )


def _propagate(about: JsonDict, options: DeleteOptions) -> None:
    """Orphaning and waiting for dependents are finalizers; each replaces the other."""
    if not options.propagation:
        return
    wanted = _PROPAGATION.get(options.propagation)
    kept = [each for each in about.get("finalizers") or () if each not in _PROPAGATION.values()]
    finalizers = [*kept, wanted] if wanted else kept
    if finalizers:
        about["finalizers"] = finalizers
    else:
        about.pop("finalizers", None)


def _grace(row: Resource, item: JsonDict, options: DeleteOptions) -> int:
    """How long the object may stay, in seconds: only pods on a node take time."""
    if row.kind != "Pod":
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


def _mark(registry: Registry, about: JsonDict, grace: int) -> None:
    about["deletionTimestamp"] = stamp(registry.clock() + grace)
    about["deletionGracePeriodSeconds"] = grace
    if about.get("generation"):
        about["generation"] += 1


def _hasten(registry: Registry, about: JsonDict, grace: int) -> None:
    """A second deletion can only shorten the time."""
    if grace < about.get("deletionGracePeriodSeconds", 0):
        about["deletionTimestamp"] = stamp(registry.clock() + grace)
        about["deletionGracePeriodSeconds"] = grace
