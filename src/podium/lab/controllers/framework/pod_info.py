"""What controllers remember of a pod: the few facts that they ask for again and again.

The whole pod stays in the registry and is read when it has to be changed. Fifty thousand of these
are nothing to the garbage collector; fifty thousand whole pods would be.
"""

from __future__ import annotations

from typing import Any, Final

from podium.lab.controllers.framework.object_fields import condition, controller_of
from podium.objects.kinds.meta import JsonObject

Key = tuple[str, str]

FINISHED: Final = frozenset({"Succeeded", "Failed"})
#: What a pod may say about how long it runs and how it ends, for those who try things out.
RUN_SECONDS: Final = "lab.podium/run-seconds"
EXIT_CODE: Final = "lab.podium/exit-code"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MOST_KEPT: Final = 1 << 16


class PodFacts:
    """One version of one pod."""

    __slots__ = (
        "active",
        "changed",
        "cost",
        "created",
        "ends",
        "ip",
        "key",
        "labels",
        "leaving",
        "node",
        "owner",
        "phase",
        "ready",
        "ready_since",
        "restarts",
        "uid",
    )

    def __init__(self, pod: JsonObject) -> None:
        """Read from the whole pod."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        self.key: Key = (metadata.get("namespace") or "", metadata["name"])
        self.uid: str = metadata.get("uid", "")
        self.labels = _shared(metadata.get("labels") or {})
        owner = controller_of(pod)
        #: Kind, name and uid of who manages it.
        self.owner = None if owner is None else _who(owner)
        self.node: str = pod["spec"].get("nodeName") or ""
        self.phase: str = status.get("phase") or "Pending"
        ready = condition(pod, "Ready")
        self.ready: bool = ready.get("status") == "True"
        #: Since when it is ready or not.
        self.changed: str = ready.get("lastTransitionTime") or ""
        self.ready_since: str = ready.get("lastTransitionTime", "") if self.ready else ""
        self.leaving: bool = "deletionTimestamp" in metadata
        #: Whether it counts for whoever wants pods: neither finished nor being deleted.
        self.active: bool = not self.leaving and self.phase not in FINISHED
        self.ip: str = status.get("podIP", "")
        self.created: str = metadata.get("creationTimestamp") or ""
        self.cost: int = _cost(metadata)
        #: Whether it says itself when it ends.
        self.ends: bool = "activeDeadlineSeconds" in pod["spec"] or _says_when(metadata)
        self.restarts: int = max(
            (each.get("restartCount", 0) for each in status.get("containerStatuses") or ()),
            default=0,
        )

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.phase in FINISHED


_owners: dict[tuple[str, str, str], tuple[str, str, str]] = {}
_label_sets: dict[tuple[Any, ...], dict[str, str]] = {}


def _who(owner: JsonObject) -> tuple[str, str, str]:
    """Kind, name and uid, one value for all pods of an owner."""
    found = (owner["kind"], owner["name"], owner["uid"])
    if len(_owners) > _MOST_KEPT:
        _owners.clear()
    return _owners.setdefault(found, found)


def _shared(labels: dict[str, str]) -> dict[str, str]:
    """The labels, one value for all pods that have the same."""
    if len(_label_sets) > _MOST_KEPT:
        _label_sets.clear()
    return _label_sets.setdefault(tuple(labels.items()), labels)


def _says_when(metadata: JsonObject) -> bool:
    annotations = metadata.get("annotations")
    return annotations is not None and RUN_SECONDS in annotations


def _cost(metadata: JsonObject) -> int:
    annotations = metadata.get("annotations")
    if not annotations or _COST not in annotations:
        return 0
    try:
        return int(annotations[_COST])
    except ValueError:
        return 0
