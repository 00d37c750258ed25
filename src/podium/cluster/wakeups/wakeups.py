"""Which event wakes which pod: the one home of that rule.

A pod that fits nowhere waits until the cluster changes in a way that could help. What could help is
a *rule set* that the profile chooses:

- `MoveRules` (Kubernetes v1.13): most changes wake every waiting pod; a new or changed assigned pod
  wakes those with a required pod-affinity term that it matches.
- `HintRules` (v1.36, in `podium.cluster.wakeups.hints`): the plugins that rejected a pod are asked,
  one by one, whether the change could alter their answer.

The queue hands events to a rule set and moves the pods it names; it knows no event itself.

Upstream: factory/factory.go and internal/queue/scheduling_queue.go, Kubernetes v1.13.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Final, Protocol

import msgspec

from podium.cluster.queue.entities import QueuedPod, is_unschedulable
from podium.engine.framework.choices import WakeUps
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinityTerm, PodStatus
from podium.objects.kinds.registry import kind_of
from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.objects.kinds.workloads import Service
from podium.objects.selectors.selectors import SelectorError, from_label_selector

logger = logging.getLogger(__name__)


class Added(msgspec.Struct, frozen=True):
    """An object is new. Of pods, only assigned ones are cluster events."""

    new: Object


class Updated(msgspec.Struct, frozen=True):
    """An object changed."""

    old: Object
    new: Object


#: Events that leave a new version of an object.
_WITH_NEW: Final = (Added, Updated)


class Deleted(msgspec.Struct, frozen=True):
    """An object is gone; so is a pod that was assumed to be on a node and then forgotten."""

    old: Object


class NominationLost(msgspec.Struct, frozen=True):
    """A nominated pod was deleted, or its nomination ended or changed."""

    old: Pod


class WaitedTooLong(msgspec.Struct, frozen=True):
    """Pods have waited so long that an event may have been missed."""


ClusterEvent = Added | Updated | Deleted | NominationLost | WaitedTooLong

#: API groups that metrics put before the kind.
_GROUPS: Final = {
    **dict.fromkeys(("ResourceClaim", "ResourceSlice", "DeviceClass"), "resource.k8s.io/"),
    **dict.fromkeys(("CSINode", "CSIDriver", "CSIStorageCapacity"), "storage.k8s.io/"),
    **dict.fromkeys(("StorageClass", "VolumeAttachment"), "storage.k8s.io/"),
    "PodGroup": "scheduling.k8s.io/",
}


class Wake(Enum):
    """What an event does to a waiting pod."""

    NO = auto()
    AFTER_BACKOFF = auto()
    NOW = auto()


class MoveRequest(msgspec.Struct, frozen=True):
    """An event, or one aspect of it, that may wake pods."""

    event: ClusterEvent
    #: What happened to the object: `Add`, `Update`, `Delete`, or an aspect of an update.
    action: str = ""
    #: Only pods with one of these interests need to be asked; `None`: all.
    topics: frozenset[str] | None = None
    #: What metrics call a pod without a node.
    unscheduled: str = WakeUps().unscheduled

    @property
    def label(self) -> str:
        """What the request is called in metrics (`NodeAdd`, `AssignedPodDelete`)."""
        if isinstance(self.event, WaitedTooLong):
            return "UnschedulableTimeout"
        kind = resource(self.event)
        if kind == "Pod":
            kind = "AssignedPod" if _is_assigned(self.event) else self.unscheduled
        return f"{_GROUPS.get(kind, '')}{kind}{self.action}"


class WakeRules(Protocol):
    """Say which pods an event wakes. Stateless: all facts are in the arguments."""

    #: Whether requests that arrive during an attempt are kept and shown to `after_failure`.
    keeps_requests: ClassVar[bool]

    def requests(self, event: ClusterEvent, waiting: int) -> Sequence[MoveRequest]:
        """The move requests that an event amounts to while so many pods wait; none: ignored."""

    def interests(self, queued: QueuedPod) -> Collection[str]:
        """The topics under which a waiting pod is to be found."""

    def wakes(self, request: MoveRequest, queued: QueuedPod) -> Wake:
        """Whether a request wakes a pod that waits."""

    def own_update(self, old: Pod, new: Pod, queued: QueuedPod) -> Wake:
        """Whether a change of the waiting pod itself wakes it."""

    def after_failure(
        self, queued: QueuedPod, requests: Sequence[MoveRequest], *, moved: bool
    ) -> Wake:
        """Where a pod goes whose attempt failed: `NO` means that it waits for an event.

        *requests* are those since the attempt began (if kept); *moved* is whether there were
        any.
        """

    def is_error(self, queued: QueuedPod) -> bool:
        """Whether the failed attempt met an error rather than a cluster without room."""

    def gate(self, pod: Pod) -> str:
        """The plugin that keeps the pod from being tried at all; empty if none does."""

    def awaited(self, queued: QueuedPod) -> Mapping[str, Sequence[str]]:
        """The events that may wake a waiting pod, by the plugin that waits for them.

        An event is a kind and an action: `Node Add`. Whether one wakes the pod also depends on the
        object.
        """


#: Stands for all plugins where none is told apart, and for those that register no events.
ANY_PLUGIN: Final = "*"
#: The topic of pods that wait for other pods to come.
_AFFINITY: Final = "pod affinity"
#: Objects whose addition, change or deletion wakes all waiting pods.
_WAKES_ALL: Final[dict[type, tuple[type, ...]]] = {
    Added: (Node, Service, PersistentVolume, PersistentVolumeClaim),
    Updated: (Service, PersistentVolume),
    Deleted: (Pod, Service),
}
_ACTIONS: Final[dict[type, str]] = {Added: "Add", Updated: "Update", Deleted: "Delete"}


@dataclass(frozen=True, slots=True)
class MoveRules:
    """v1.13: an event moves every waiting pod, or those whose affinity an assigned pod matches."""

    keeps_requests: ClassVar[bool] = False
    #: The feature gate VolumeScheduling; without it a changed claim wakes no pod.
    volume_scheduling: bool = True

    def requests(self, event: ClusterEvent, waiting: int) -> Sequence[MoveRequest]:
        """At most one request; it counts as one even if it moves no pod."""
        action = _ACTIONS.get(type(event), "")
        if isinstance(event, Added | Updated) and isinstance(event.new, Pod):
            return (MoveRequest(event, action, frozenset({_AFFINITY})),)
        if self._moves_all(event, waiting):
            return (MoveRequest(event, action),)
        return ()

    def _moves_all(self, event: ClusterEvent, waiting: int) -> bool:
        match event:
            case Added(StorageClass() as added):
                return added.volume_binding_mode == "WaitForFirstConsumer"
            case Updated(Node() as old, Node() as new):
                # With no pod waiting the comparison is saved, but the request must still count for
                # the pod that is being tried.
                return waiting == 0 or node_changed(old, new)
            case Updated(_, PersistentVolumeClaim()):
                return self.volume_scheduling
            case Added(subject) | Updated(_, subject) | Deleted(subject):
                return isinstance(subject, _WAKES_ALL[type(event)])
        return isinstance(event, WaitedTooLong)

    def interests(self, queued: QueuedPod) -> Collection[str]:
        """Whether the pod has required pod affinity."""
        return (_AFFINITY,) if required_affinity(queued.pod) else ()

    def wakes(self, request: MoveRequest, queued: QueuedPod) -> Wake:
        """All pods, or those with a term that the assigned pod matches."""
        match request.event:
            case Added(Pod() as assigned) | Updated(_, Pod() as assigned) if not any(
                _term_matches(queued.pod, term, assigned) for term in required_affinity(queued.pod)
            ):
                return Wake.NO
        return Wake.AFTER_BACKOFF

    def own_update(self, old: Pod, new: Pod, queued: QueuedPod) -> Wake:  # noqa: ARG002
        """A change of anything but the status wakes the pod at once."""
        return Wake.NO if _without_status(old) == _without_status(new) else Wake.NOW

    def after_failure(
        self,
        queued: QueuedPod,
        requests: Sequence[MoveRequest],  # noqa: ARG002
        *,
        moved: bool,
    ) -> Wake:
        """Wait, unless something moved meanwhile or the status does not say unschedulable."""
        waits = not moved and is_unschedulable(queued.pod)
        return Wake.NO if waits else Wake.AFTER_BACKOFF

    def is_error(self, queued: QueuedPod) -> bool:
        """Go by the pod's status."""
        return not is_unschedulable(queued.pod)

    def gate(self, pod: Pod) -> str:  # noqa: ARG002
        """There are no gates."""
        return ""

    def awaited(self, queued: QueuedPod) -> Mapping[str, Sequence[str]]:
        """The events that wake all waiting pods; with required affinity also those of pods."""
        found = [
            f"{kind_of(kind).name} {_ACTIONS[event]}"
            for event, kinds in _WAKES_ALL.items()
            for kind in kinds
        ]
        found += ["Node Update", "StorageClass Add"]
        if self.volume_scheduling:
            found.append("PersistentVolumeClaim Update")
        if required_affinity(queued.pod):
            found += ["Pod Add", "Pod Update"]
        return {ANY_PLUGIN: sorted(found)}


def resource(event: ClusterEvent) -> str:
    """The kind of object that an event is about, as the API writes it."""
    if isinstance(event, WaitedTooLong):
        return ""
    subject = event.new if isinstance(event, _WITH_NEW) else event.old
    if type(subject) is Object:
        return subject.kind  # of a kind that is not read, passed on as a mere event
    return kind_of(type(subject)).name


def _is_assigned(event: ClusterEvent) -> bool:
    match event:
        case Added(Pod() as pod) | Updated(_, Pod() as pod):
            return bool(pod.spec.node_name)
    return True  # of pods that go, only assigned and nominated ones are events


def node_changed(old: Node, new: Node) -> bool:
    """Whether the update of a node could make a pod fit."""
    return (
        (old.spec.unschedulable and not new.spec.unschedulable)
        or old.status.allocatable != new.status.allocatable
        or old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or conditions_changed(old, new)
    )


def conditions_changed(old: Node, new: Node) -> bool:
    """Whether a condition has another status; the order in which they are listed does not count."""
    before, after = old.status.conditions, new.status.conditions
    return before != after and _condition_statuses(old) != _condition_statuses(new)


def _condition_statuses(node: Node) -> dict[str, str]:
    """The status of each condition; times and messages change all the time and are left out."""
    return {condition.type: condition.status for condition in node.status.conditions or ()}


def required_affinity(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The terms that say next to which pods the pod must run."""
    affinity = pod.spec.affinity
    return (affinity and affinity.pod_affinity and affinity.pod_affinity.required) or ()


def _term_matches(owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    if other.namespace not in (term.namespaces or (owner.namespace,)):
        return False
    try:
        return from_label_selector(term.label_selector).matches(other.labels)
    except SelectorError as error:
        # kube-scheduler logs this and then crashes on the selector it does not have.
        logger.warning("pod affinity of %s is ignored: %s", owner.key, error)
        return False


def _without_status(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="")
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())
