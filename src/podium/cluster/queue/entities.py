"""What the queue orders, a pod or a pod group, and what it remembers of each between attempts.

Upstream: framework/types.go (QueuedPodGroupInfo), Kubernetes v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from podium.objects.kinds.pod import Pod, PodCondition
from podium.objects.kinds.pod_group import PodGroup
from podium.objects.times import NEVER, seconds


class Pool(StrEnum):
    """Where a pod waits; the names are those of the `pending_pods` metric."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    #: Pods of a group that does not exist yet.
    INCOMPLETE = "incomplete"
    #: Pods of a group that is being tried.
    PENDING = "pending"


@dataclass(slots=True)
class QueuedPod:
    """One pod of the queue. It lives from the pod's arrival until it is scheduled or deleted."""

    pod: Pod
    #: What orders it among pods of the same priority.
    timestamp: float
    #: The place in the order of arrival, which breaks the remaining ties.
    arrival: int
    attempts: int = 0
    #: How often it was found unschedulable, and how many errors it met in a row since.
    rejections: int = 0
    errors: int = 0
    failed_at: float = NEVER
    #: When it last left the unschedulable pool for having waited too long.
    flushed_at: float = NEVER
    #: Plugins that rejected it at the last attempt, and plugins that asked to wait (Pending).
    rejected_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    #: The plugin that keeps it from being tried at all.
    gated_by: str = ""

    @property
    def key(self) -> str:
        """The key of the pod in the queue: `namespace/name`."""
        return self.pod.key

    @property
    def priority(self) -> int:
        """What orders it before anything else."""
        return self.pod.priority

    @property
    def size(self) -> int:
        """How many pods rest together."""
        return 1

    @property
    def rests_apart(self) -> bool:
        """Whether it is never tried before its rest is over."""
        return bool(self.errors)

    def members(self) -> Iterable[QueuedPod]:
        """The pods that are tried together: this one alone."""
        return (self,)

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose answer must change before the pod can be scheduled."""
        return self.rejected_by | self.pending_on


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a pod of the queue waits, and what could end that. Times are seconds since 1970."""

    pool: Pool
    #: Since when it is queued, or was last tried.
    since: float
    attempts: int
    #: Until when it backs off, whatever happens; None if it does not.
    backoff_until: float | None
    #: From when on it is tried again without an event; None if it is not.
    retried_at: float | None
    #: The plugin that keeps it from being tried at all.
    gated_by: str
    #: The events that may wake it, by the plugin that waits for them.
    awaited: Mapping[str, Sequence[str]]


class Turn(msgspec.Struct, frozen=True):
    """A pod taken from the queue to be tried; ends with `requeue` or `done`."""

    queued: QueuedPod
    pod: Pod
    #: The number of this scheduling cycle.
    cycle: int
    #: Which attempt it is for this pod, from 1.
    number: int
    #: How many move requests had been recorded when the turn began.
    start: int = 0


def scheduled_condition(pod: Pod) -> PodCondition | None:
    """The condition in which the outcome of the last attempt is written."""
    conditions = pod.status.conditions or ()
    return next((found for found in conditions if found.type == "PodScheduled"), None)


def is_unschedulable(pod: Pod) -> bool:
    """Whether the pod's own status says that it fits nowhere."""
    condition = scheduled_condition(pod)
    return (
        condition is not None
        and condition.status == "False"
        and condition.reason == "Unschedulable"
    )


def written_time(pod: Pod) -> float:
    """When the pod says it was last tried, or else was made; to the second."""
    condition = scheduled_condition(pod)
    if condition is None:
        return seconds(pod.metadata.creation_timestamp)
    probed = seconds(condition.last_probe_time)
    return probed if probed != NEVER else seconds(condition.last_transition_time)


def entity_key(group: str) -> str:
    """The key in the queue of a group, given as `namespace/name`; no pod has such a key."""
    return f"podgroup {group}"


@dataclass(slots=True)
class QueuedGroup:
    """A group of the queue, with the pods that are tried together."""

    group: PodGroup
    #: What orders it among entities of the same priority: at first, the time of its first pod.
    timestamp: float
    arrival: int
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    failed_at: float = NEVER
    flushed_at: float = NEVER
    #: The plugin that keeps one of its pods, and so all of them, from being tried.
    gated_by: str = ""
    pods: dict[str, QueuedPod] = field(default_factory=dict)
    #: How many pods there were when its rest began, which decides how long it may get.
    size: int = 0
    #: How many changes of the cluster its last cycle had seen; -1 before it was rejected.
    seen_changes: int = -1
    #: A group is never tried before its rest is over.
    rests_apart: bool = True

    @property
    def key(self) -> str:
        """Its key in the queue."""
        return entity_key(self.group.key)

    @property
    def priority(self) -> int:
        """What orders it before anything else."""
        return self.group.priority

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins that rejected any of its pods."""
        found = frozenset({self.gated_by}) if self.gated_by else frozenset()
        return found.union(*(each.rejectors for each in self.pods.values()))

    def members(self) -> Iterable[QueuedPod]:
        """The pods in the order in which they are tried."""
        return sorted(self.pods.values(), key=_place)

    def add(self, queued: QueuedPod) -> None:
        """Let a pod wait with the group."""
        self.pods[queued.key] = queued


def _place(queued: QueuedPod) -> tuple[int, int, float, str]:
    """Pods of higher priority first, then those tried more often, then the older, then by name."""
    return -queued.pod.priority, -queued.attempts, queued.timestamp, queued.pod.name


#: What the queue orders: a pod, or a group with all its pods.
Entity = QueuedPod | QueuedGroup


class GroupTurn(msgspec.Struct, frozen=True):
    """A group taken from the queue to be tried; ends with `requeue_group`."""

    queued: QueuedGroup
    group: PodGroup
    #: The turn of each of its pods, in the order in which they are tried.
    members: tuple[Turn, ...]
    cycle: int
    #: Which attempt it is for this group, from 1.
    number: int
