"""A pod group that waits with its pods: one entity of the queue.

Upstream: framework/types.go (QueuedPodGroupInfo), Kubernetes v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from podium.cluster.queue.queued_pod import QueuedPod, Turn
from podium.objects.kinds.pod_group import PodGroup
from podium.objects.times import NEVER


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
