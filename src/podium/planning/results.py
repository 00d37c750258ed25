"""What a plan answers: values without behaviour, which tables, pages and programs read.

The JSON form is `kind: Plan`; `docs/plan.md` explains it and `docs/plan.schema.json` states it.
"""

from __future__ import annotations

from typing import Any

import msgspec

API_VERSION = "podium/v1"


class Value(msgspec.Struct, rename="camel", omit_defaults=False, kw_only=True):
    """The base of all results: fields are in camel case in JSON."""


class BlockedEviction(Value):
    """A pod that could not be evicted, because of a disruption budget or another refusal."""

    pod: str
    node: str
    reason: str


class AppliedChange(Value):
    """One change, when it was made and came to rest, and what stood in its way."""

    change: str
    #: Virtual seconds since the first change.
    began: float
    ended: float = 0.0
    blocked: list[BlockedEviction] = msgspec.field(default_factory=list)
    #: What kubectl would ask a flag for, and what was left alone.
    notes: list[str] = msgspec.field(default_factory=list)
    #: Whether the cluster was still changing when the limit of time was reached.
    unfinished: bool = False


class MovedPod(Value):
    """A pod that went, and the pod that its controller created in its place."""

    pod: str
    workload: str
    from_node: str
    to_node: str
    #: The new pod; equal to `pod` for pods of stateful sets.
    new_pod: str
    #: Seconds from the end of the old pod's service to the start of the new one; None if it never
    #: started.
    interrupted: float | None = None


class NewPod(Value):
    """A pod that the changes created, and that has a node."""

    pod: str
    workload: str
    node: str


class GonePod(Value):
    """A pod that the changes removed, and that nothing replaces."""

    pod: str
    workload: str
    node: str
    #: Whether it was meant to go: scaled down, deleted, finished, or a daemon pod of a lost node.
    wanted: bool
    reason: str


class PendingPod(Value):
    """A pod without a node, with the decision that says why."""

    pod: str
    workload: str
    message: str
    #: Whether it had no node before the changes, either.
    was_pending: bool
    #: The node that the pod had before, if it replaces one that had a node.
    from_node: str = ""
    #: The Decision about this pod, or about another pod of its workload.
    decision: dict[str, Any] | None = None


class EvictedPod(Value):
    """A pod that the scheduler evicted to make room for another one."""

    pod: str
    node: str
    preemptor: str
    at: float


class Usage(Value):
    """What the pods on one node, or on the nodes of one zone, request of what there is."""

    name: str
    nodes: int
    pods: int
    #: Resource -> requested and allocatable amounts; cpu is in thousandths.
    requested: dict[str, int]
    allocatable: dict[str, int]


class Balance(Value):
    """The use of zones and nodes at one time."""

    zones: list[Usage]
    nodes: list[Usage]


class TimelineEvent(Value):
    """Something that happened at a virtual time, such as `bound` or `terminating`."""

    at: float
    what: str
    object: str
    text: str


class Plan(Value):
    """What follows from the changes."""

    api_version: str = API_VERSION
    kind: str = "Plan"
    profile: str = ""
    changes: list[AppliedChange] = msgspec.field(default_factory=list)
    moved: list[MovedPod] = msgspec.field(default_factory=list)
    pending: list[PendingPod] = msgspec.field(default_factory=list)
    created: list[NewPod] = msgspec.field(default_factory=list)
    gone: list[GonePod] = msgspec.field(default_factory=list)
    evicted: list[EvictedPod] = msgspec.field(default_factory=list)
    before: Balance = msgspec.field(default_factory=lambda: Balance(zones=[], nodes=[]))
    after: Balance = msgspec.field(default_factory=lambda: Balance(zones=[], nodes=[]))
    timeline: list[TimelineEvent] = msgspec.field(default_factory=list)
    #: Virtual seconds from the first change until the cluster was at rest.
    seconds: float = 0.0
    #: Whether the plan was interrupted before all changes were made.
    interrupted: bool = False

    @property
    def leaves_pods(self) -> bool:
        """Whether something is left without a node: pending, or gone without being meant to go."""
        return bool(self.pending) or any(not each.wanted for each in self.gone)

    @property
    def blocked(self) -> list[BlockedEviction]:
        """All evictions that were refused to the end."""
        return [each for change in self.changes for each in change.blocked]
