"""The fields of pods that controllers read often, kept in memory for every pod.

The whole pod stays encoded in the store and is decoded when it has to be changed. The garbage
collector of Python would spend much time on the dictionaries of fifty thousand whole pods.
"""

from __future__ import annotations

from typing import Any, Final

from podium.lab.controllers.framework.object_fields import Key, condition, controller_of
from podium.objects.kinds.meta import JsonObject

FINISHED: Final = frozenset({"Succeeded", "Failed"})
#: Annotations for experiments: the seconds that a pod runs, and the exit code it ends with.
RUN_SECONDS: Final = "lab.podium/run-seconds"
EXIT_CODE: Final = "lab.podium/exit-code"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_INTERNED_LIMIT: Final = 1 << 16


class PodInfo:
    """One version of one pod, never changed."""

    __slots__ = (
        "active",
        "created",
        "deletion",
        "deletion_cost",
        "has_end",
        "ip",
        "key",
        "labels",
        "node",
        "owner",
        "phase",
        "ready",
        "ready_changed",
        "ready_since",
        "restarts",
        "stop_seconds",
        "terminating",
        "uid",
    )

    def __init__(self, pod: JsonObject) -> None:
        """Read the fields of *pod*."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        self.key: Key = (metadata.get("namespace") or "", metadata["name"])
        self.uid: str = metadata.get("uid", "")
        #: Pods with equal labels share one dictionary, so they can be compared by identity.
        self.labels = _intern_labels(metadata.get("labels") or {})
        owner = controller_of(pod)
        #: Kind, name and uid of the managing controller.
        self.owner = None if owner is None else _intern_owner(owner)
        self.node: str = pod["spec"].get("nodeName") or ""
        self.phase: str = status.get("phase") or "Pending"
        ready = condition(pod, "Ready")
        self.ready: bool = ready.get("status") == "True"
        #: The last transition of the Ready condition.
        self.ready_changed: str = ready.get("lastTransitionTime") or ""
        self.ready_since: str = ready.get("lastTransitionTime", "") if self.ready else ""
        #: When the grace period of a terminating pod ends; empty if the pod is not deleted.
        self.deletion: str = metadata.get("deletionTimestamp") or ""
        self.terminating: bool = bool(self.deletion)
        #: The seconds for which preStop hooks keep a terminating pod.
        self.stop_seconds: int = _pre_stop_sleep(pod["spec"]) if self.terminating else 0
        #: Whether the pod counts as a replica: neither finished nor terminating.
        self.active: bool = not self.terminating and self.phase not in FINISHED
        self.ip: str = status.get("podIP", "")
        self.created: str = metadata.get("creationTimestamp") or ""
        self.deletion_cost: int = _deletion_cost(metadata)
        #: Whether the pod says when it ends, by a deadline or an annotation.
        self.has_end: bool = "activeDeadlineSeconds" in pod["spec"] or _has_run_seconds(metadata)
        self.restarts: int = max(
            (each.get("restartCount", 0) for each in status.get("containerStatuses") or ()),
            default=0,
        )

    @property
    def finished(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in FINISHED


_owners: dict[tuple[str, str, str], tuple[str, str, str]] = {}
_label_sets: dict[tuple[Any, ...], dict[str, str]] = {}


def _intern_owner(owner: JsonObject) -> tuple[str, str, str]:
    found = (owner["kind"], owner["name"], owner["uid"])
    if len(_owners) > _INTERNED_LIMIT:
        _owners.clear()
    return _owners.setdefault(found, found)


def _intern_labels(labels: dict[str, str]) -> dict[str, str]:
    if len(_label_sets) > _INTERNED_LIMIT:
        _label_sets.clear()
    return _label_sets.setdefault(tuple(labels.items()), labels)


def _has_run_seconds(metadata: JsonObject) -> bool:
    annotations = metadata.get("annotations")
    return annotations is not None and RUN_SECONDS in annotations


def _pre_stop_sleep(spec: JsonObject) -> int:
    """The longest sleep in the preStop hooks of the containers; commands cannot run, and take 0."""
    found = 0
    for container in spec.get("containers") or ():
        lifecycle = container.get("lifecycle")
        if lifecycle:
            sleep = (lifecycle.get("preStop") or {}).get("sleep") or {}
            found = max(found, int(sleep.get("seconds") or 0))
    return found


def _deletion_cost(metadata: JsonObject) -> int:
    annotations = metadata.get("annotations")
    if not annotations or _DELETION_COST not in annotations:
        return 0
    try:
        return int(annotations[_DELETION_COST])
    except ValueError:
        return 0
