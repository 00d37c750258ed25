"""The result of scheduling a pod group, and everything that led to it.

Upstream: pkg/scheduler/schedule_one_podgroup.go, Kubernetes v1.37.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from podium.engine.framework.decision import ClaimRelease, Decision
    from podium.objects.kinds.pod import Pod

Code = Literal["Success", "Unschedulable", "Error"]
SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"
#: Begins the text of a group that cannot be scheduled, and of its pods that fitted.
GROUP_UNSCHEDULABLE: Final = "pod group is unschedulable"


class Progress(msgspec.Struct, frozen=True):
    """How many pods of a group have a node, and how many are still to be tried."""

    min_count: int
    scheduled: int
    remaining: int

    @property
    def is_hopeless(self) -> bool:
        """Whether too few pods are left to reach the minimum."""
        return self.scheduled + self.remaining < self.min_count

    @property
    def is_enough(self) -> bool:
        """Whether the minimum is reached."""
        return self.scheduled >= self.min_count

    @property
    def missing(self) -> int:
        """How many more pods need a node."""
        return max(self.min_count - self.scheduled, 0)

    @property
    def text(self) -> str:
        """The reason why the group waits or fails; empty if the minimum is reached."""
        if self.is_enough:
            return ""
        what = "cannot be satisfied" if self.is_hopeless else "is not yet satisfied"
        counted = f"{self.scheduled} scheduled, {self.remaining} remaining"
        return f"minCount ({self.min_count}) {what}: {counted}"


class GroupPreemption(msgspec.Struct, frozen=True):
    """The pods to evict for a group, from all nodes."""

    #: namespace/name, in the order in which the search listed them, and their uids.
    pods: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    #: The node from which each of them goes.
    nodes: tuple[str, ...] = ()
    violations: int = 0
    #: Uid of a pod of the group -> the node that is nominated to it.
    nominated: dict[str, str] = {}
    #: Whether pods evicted earlier are still leaving, so that nobody else is evicted.
    ongoing: bool = False


class GroupAttempt(msgspec.Struct, frozen=True):
    """One run of the algorithm over the pods of a group; everything it assumed was undone."""

    code: Code
    message: str
    #: A decision for each pod that was tried, in order.
    decisions: tuple[Decision, ...] = ()
    #: The progress before the first pod, and after each pod that was tried.
    progress: tuple[Progress, ...] = ()

    @property
    def placed(self) -> tuple[Decision, ...]:
        """The decisions that found a node."""
        return tuple(each for each in self.decisions if each.node is not None)


class MemberResult(msgspec.Struct, frozen=True):
    """What became of one pod of a group."""

    pod: Pod
    code: Code
    #: The text that users see when the pod has no node.
    message: str = ""
    #: Where it goes.
    node: str | None = None
    #: Its own decision; None if it was not tried.
    decision: Decision | None = None
    #: The nomination of the pod: a node, "" when it is cleared, None when it is kept.
    nomination: str | None = None


@dataclass(slots=True)
class GroupDecision:
    """The nodes chosen for the pods of a group, or why none of them gets a node."""

    #: namespace/name and uid of the group.
    group: str
    uid: str
    profile: str
    min_count: int
    is_gang: bool
    #: The status of the group, and its text.
    code: Code
    message: str
    members: tuple[MemberResult, ...]
    #: The status that the queue goes by: that of the algorithm, before post-filters.
    queue_code: Code = UNSCHEDULABLE
    #: What the pods were tried with; None when the group failed before any pod was tried.
    attempt: GroupAttempt | None = None
    #: The run without the possible victims, if there was one.
    trial: GroupAttempt | None = None
    preemption: GroupPreemption | None = None
    #: The status of the search for victims and how long it took; empty if there was none.
    preemption_code: str = ""
    preemption_seconds: float = 0.0
    waits_for_preemption: bool = False
    released: tuple[ClaimRelease, ...] = ()
    #: Pod and node of everything that fitted and was undone, because the group does not fit.
    undone: tuple[tuple[str, str], ...] = ()
    #: The text of the post-filters, as far as there is one.
    post_message: str = ""
    decided_at: float = 0.0
    #: Every search for a node, in order, those of preemption included.
    searches: list[Decision] = field(default_factory=list)

    @property
    def scheduled(self) -> int:
        """How many pods get a node."""
        return sum(each.node is not None for each in self.members)
