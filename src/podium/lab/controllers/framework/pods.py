"""The pods of the cluster as controllers read them, by owner, by node and by namespace.

The fields that controllers read often are kept in memory for every pod and follow each write. The
whole pod stays encoded in the store and is decoded when it has to be changed. The garbage collector
of Python would spend much time on the dictionaries of fifty thousand whole pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from podium.lab.controllers.framework.object_fields import Key
from podium.lab.store.imported_pods import (
    NO_STATUS,
    ConditionHead,
    PodHead,
    SpecHead,
    StatusHead,
)
from podium.objects.kinds.meta import OwnerReference

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
        "finalizers",
        "has_end",
        "ip",
        "key",
        "labels",
        "node",
        "owner",
        "owners",
        "phase",
        "ready",
        "ready_changed",
        "ready_since",
        "restarts",
        "stop_seconds",
        "terminating",
        "uid",
        "uses_claims",
    )

    def __init__(self, pod: PodHead) -> None:
        """Read the fields of *pod*."""
        metadata, spec, status = pod.metadata, pod.spec, pod.status or NO_STATUS
        self.key: Key = (metadata.namespace, metadata.name)
        self.uid: str = metadata.uid
        #: Pods with equal labels share one dictionary, so they can be compared by identity.
        self.labels = _intern_labels(metadata.labels or {})
        #: Kind, name and uid of the managing controller.
        self.owner: tuple[str, str, str] | None = None
        #: The uids of all owners.
        self.owners: tuple[str, ...] = ()
        if metadata.owner_references:
            self._set_owners(metadata.owner_references)
        self.finalizers: Sequence[str] = metadata.finalizers or ()
        self.node: str = spec.node_name or ""
        self.phase: str = status.phase or "Pending"
        ready = _ready_condition(status)
        self.ready: bool = ready.status == "True"
        #: The last transition of the Ready condition.
        self.ready_changed: str = ready.last_transition_time or ""
        self.ready_since: str = self.ready_changed if self.ready else ""
        #: When the grace period of a terminating pod ends; empty if the pod is not deleted.
        self.deletion: str = metadata.deletion_timestamp or ""
        self.terminating: bool = bool(self.deletion)
        #: The seconds for which preStop hooks keep a terminating pod.
        self.stop_seconds: int = _pre_stop_sleep(spec) if self.terminating else 0
        #: Whether the pod counts as a replica: neither finished nor terminating.
        self.active: bool = not self.terminating and self.phase not in FINISHED
        self.ip: str = status.pod_ip or ""
        self.created: str = metadata.creation_timestamp or ""
        annotations = metadata.annotations
        self.deletion_cost: int = _deletion_cost(annotations) if annotations else 0
        #: Whether the pod says when it ends, by a deadline or an annotation.
        self.has_end: bool = spec.active_deadline_seconds is not None or (
            annotations is not None and RUN_SECONDS in annotations
        )
        #: Whether it uses claims for devices.
        self.uses_claims: bool = (
            bool(spec.resource_claims) or status.extended_resource_claim_status is not None
        )
        self.restarts: int = 0
        for each in status.container_statuses or ():
            self.restarts = max(self.restarts, each.restart_count)

    def _set_owners(self, references: Sequence[OwnerReference]) -> None:
        first = references[0]
        if first.controller and len(references) == 1:
            owner, self.owners = _intern_sole_owner((first.kind, first.name, first.uid))
            self.owner = owner
            return
        self.owners = _intern_uids(tuple([each.uid for each in references]))
        for each in references:
            if each.controller:
                self.owner = _intern_owner((each.kind, each.name, each.uid))
                return

    @property
    def finished(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in FINISHED


_owners: dict[tuple[str, str, str], tuple[str, str, str]] = {}
_owner_uids: dict[tuple[str, ...], tuple[str, ...]] = {}
_sole_owners: dict[tuple[str, str, str], tuple[tuple[str, str, str], tuple[str, ...]]] = {}
_label_sets: dict[tuple[Any, ...], dict[str, str]] = {}
_NO_CONDITION: Final = ConditionHead()


def _ready_condition(status: StatusHead) -> ConditionHead:
    for each in status.conditions or ():
        if each.type == "Ready":
            return each
    return _NO_CONDITION


def _intern_owner(owner: tuple[str, str, str]) -> tuple[str, str, str]:
    if len(_owners) > _INTERNED_LIMIT:
        _owners.clear()
    return _owners.setdefault(owner, owner)


def _intern_sole_owner(
    owner: tuple[str, str, str],
) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    """The interned owner of a pod that has no other, and the tuple of its uid."""
    found = _sole_owners.get(owner)
    if found is None:
        if len(_sole_owners) > _INTERNED_LIMIT:
            _sole_owners.clear()
        found = _sole_owners[owner] = (_intern_owner(owner), _intern_uids((owner[2],)))
    return found


def _intern_uids(uids: tuple[str, ...]) -> tuple[str, ...]:
    if len(_owner_uids) > _INTERNED_LIMIT:
        _owner_uids.clear()
    return _owner_uids.setdefault(uids, uids)


def _intern_labels(labels: dict[str, str]) -> dict[str, str]:
    if len(_label_sets) > _INTERNED_LIMIT:
        _label_sets.clear()
    return _label_sets.setdefault(tuple(labels.items()), labels)


def _pre_stop_sleep(spec: SpecHead) -> int:
    """The longest sleep in the preStop hooks of the containers; commands cannot run, and take 0."""
    found = 0
    for container in spec.containers or ():
        hook = None if container.lifecycle is None else container.lifecycle.pre_stop
        if hook is not None and hook.sleep is not None:
            found = max(found, hook.sleep.seconds or 0)
    return found


def _deletion_cost(annotations: Mapping[str, str]) -> int:
    if _DELETION_COST not in annotations:
        return 0
    try:
        return int(annotations[_DELETION_COST])
    except ValueError:
        return 0


_NO_PODS: Final[dict[Key, PodInfo]] = {}


class OwnedPods:
    """The pods that one controller manages, and how many of them are active and ready."""

    __slots__ = ("active", "pods", "ready")

    def __init__(self) -> None:
        self.pods: dict[Key, PodInfo] = {}
        self.active = 0
        self.ready = 0

    def __iter__(self) -> Iterator[PodInfo]:
        """All pods, finished and terminating ones too."""
        return iter(self.pods.values())

    def active_pods(self) -> list[PodInfo]:
        """The pods that are neither finished nor terminating."""
        return [pod for pod in self.pods.values() if pod.active]

    def add(self, pod: PodInfo) -> None:
        """Add a pod and count it."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Remove a pod that was added."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def _count(self, pod: PodInfo, by: int) -> None:
        if pod.active:
            self.active += by
            if pod.ready:
                self.ready += by


class LabPods:
    """All pods of the cluster, and where to find them."""

    def __init__(self) -> None:
        self.all: dict[Key, PodInfo] = {}
        self.by_owner: dict[str, OwnedPods] = {}
        self.by_node: dict[str, dict[Key, PodInfo]] = {}
        self.by_namespace: dict[str, dict[Key, PodInfo]] = {}
        #: Pods without a managing controller by namespace; controllers may adopt them.
        self.orphans: dict[str, dict[Key, PodInfo]] = {}

    def of_owner(self, uid: str) -> OwnedPods:
        """The pods that the controller with this uid manages."""
        return self.by_owner.get(uid) or OwnedPods()

    def on_node(self, name: str) -> dict[Key, PodInfo]:
        """The pods that are bound to a node."""
        return self.by_node.get(name, _NO_PODS)

    def in_namespace(self, namespace: str) -> dict[Key, PodInfo]:
        """The pods of a namespace."""
        return self.by_namespace.get(namespace, _NO_PODS)

    def orphans_in(self, namespace: str) -> dict[Key, PodInfo]:
        """The pods of a namespace without a managing controller."""
        return self.orphans.get(namespace, _NO_PODS)

    def put(self, pod: PodInfo) -> PodInfo | None:
        """Add or replace a pod; returns the version before."""
        key = pod.key
        before = self.all.get(key)
        self.all[key] = pod
        if before is not None:
            self._remove_from_owner(before)
        _entry(self.by_namespace, key[0])[key] = pod
        if pod.node:
            _entry(self.by_node, pod.node)[key] = pod
        if pod.owner is None:
            _entry(self.orphans, key[0])[key] = pod
        else:
            uid = pod.owner[2]
            owned = self.by_owner.get(uid)
            if owned is None:
                owned = self.by_owner[uid] = OwnedPods()
            owned.add(pod)
        return before

    def drop(self, key: Key) -> PodInfo | None:
        """Remove a pod; returns its last version."""
        before = self.all.pop(key, None)
        if before is None:
            return None
        self._remove_from_owner(before)
        _discard(self.by_namespace, key[0], key)
        _discard(self.by_node, before.node, key)
        if before.owner is not None and not self.by_owner[before.owner[2]].pods:
            del self.by_owner[before.owner[2]]
        return before

    def _remove_from_owner(self, pod: PodInfo) -> None:
        if pod.owner is None:
            _discard(self.orphans, pod.key[0], pod.key)
        else:
            self.by_owner[pod.owner[2]].remove(pod)


def _entry(index: dict[str, dict[Key, PodInfo]], name: str) -> dict[Key, PodInfo]:
    found = index.get(name)
    if found is None:
        found = index[name] = {}
    return found


def _discard(index: dict[str, dict[Key, PodInfo]], name: str, key: Key) -> None:
    found = index.get(name)
    if found is not None:
        found.pop(key, None)
        if not found:
            del index[name]
