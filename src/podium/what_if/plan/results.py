"""What a plan answers: values without behaviour, which tables, pages and programs read.

As JSON it is `kind: Plan`; `docs/plan.md` explains it and `docs/plan.schema.json` states it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.library.frames import TabularAnswer
from podium.render.plain import counted

API_VERSION = "podium/v1"


class PlanValue(msgspec.Struct, rename="camel", omit_defaults=False, kw_only=True):
    """The base of all results: fields are in camel case in JSON."""


class BlockedEviction(PlanValue):
    """A pod that could not be evicted, because of a disruption budget or another refusal."""

    pod: str
    node: str
    reason: str


class AppliedChange(PlanValue):
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


class MovedPod(PlanValue):
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


class NewPod(PlanValue):
    """A pod that the changes created, and that has a node."""

    pod: str
    workload: str
    node: str


class GonePod(PlanValue):
    """A pod that the changes removed, and that nothing replaces."""

    pod: str
    workload: str
    node: str
    #: Whether it was meant to go: scaled down, deleted, finished, or a daemon pod of a lost node.
    wanted: bool
    reason: str


class PendingPod(PlanValue):
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
    #: What the input does not have, and what the answer about this pod depends on; usually empty.
    unknown: str = ""


class EvictedPod(PlanValue):
    """A pod that the scheduler evicted to make room for another one."""

    pod: str
    node: str
    preemptor: str
    at: float


class PlannedGroup(PlanValue):
    """A pod group after the changes: which of its pods have a node, and why the others do not."""

    group: str
    #: How many pods must have a node; 1 for the basic policy.
    min_count: int
    #: Its pods with a node -> the node, and those without one.
    placed: dict[str, str]
    without_node: list[str]
    #: How many more pods the group needs.
    missing: int
    #: Why it does not fit, a sentence each; empty if no pod waits.
    why: list[str] = msgspec.field(default_factory=list)
    #: Its next cycle as `podGroup` of a Decision; None if no pod waits, or the group is held.
    cycle: dict[str, Any] | None = None


class Usage(PlanValue):
    """What the pods on one node, or on the nodes of one zone, request of what there is."""

    name: str
    nodes: int
    pods: int
    #: Resource -> requested and allocatable amounts; cpu is in thousandths.
    requested: dict[str, int]
    allocatable: dict[str, int]


class Balance(PlanValue):
    """The use of zones and nodes at one time."""

    zones: list[Usage]
    nodes: list[Usage]


class TimelineEvent(PlanValue):
    """Something that happened at a virtual time, such as `bound` or `terminating`."""

    at: float
    what: str
    object: str
    text: str


class Plan(PlanValue, TabularAnswer):
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
    #: The pod groups whose pods moved, are new or wait, or which have fewer pods than they need.
    groups: list[PlannedGroup] = msgspec.field(default_factory=list)
    before: Balance = msgspec.field(default_factory=lambda: Balance(zones=[], nodes=[]))
    after: Balance = msgspec.field(default_factory=lambda: Balance(zones=[], nodes=[]))
    timeline: list[TimelineEvent] = msgspec.field(default_factory=list)
    #: What happened to the cluster as it was, before the first change; times count from the input.
    anyway: list[TimelineEvent] = msgspec.field(default_factory=list)
    #: What the input lacks, and which controllers fail.
    notes: list[str] = msgspec.field(default_factory=list)
    #: Virtual seconds from the first change until the cluster was at rest.
    seconds: float = 0.0
    #: Whether the plan was interrupted before all changes were made.
    interrupted: bool = False

    def __repr__(self) -> str:
        """What follows, in one sentence."""
        return f"<Plan: {self.summary()}>"

    def __getitem__(self, name: str) -> list[PodOutcome]:
        """What became of a pod, or of the pods of a workload, by name or by part of it."""
        found: list[PodOutcome] = [
            each
            for group in (self.moved, self.pending, self.created, self.gone)
            for each in group
            if _is_named(each, name)
        ]
        if not found:
            raise KeyError(f"nothing became of {name}")
        return found

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The names of columns, and a row for each pod that moved, came, went or waits."""
        return ("pod", "workload", "outcome", "from", "to", "message"), [
            *((p.pod, p.workload, "moved", p.from_node, p.to_node, "") for p in self.moved),
            *((p.pod, p.workload, "created", "", p.node, "") for p in self.created),
            *((p.pod, p.workload, "pending", p.from_node, "", p.message) for p in self.pending),
            *((p.pod, p.workload, "gone", p.node, "", p.reason) for p in self.gone),
            *((p.pod, "", "evicted", p.node, "", f"for {p.preemptor}") for p in self.evicted),
        ]

    def summary(self) -> str:
        """What follows, in one sentence."""
        parts = []
        if self.interrupted:
            parts.append("interrupted")
        if self.moved:
            parts.append(f"{counted(len(self.moved), 'pod')} moved")
        if self.created:
            parts.append(f"{counted(len(self.created), 'pod')} new")
        removed = sum(each.wanted for each in self.gone)
        if removed:
            parts.append(f"{counted(removed, 'pod')} removed")
        if self.evicted:
            parts.append(f"{counted(len(self.evicted), 'pod')} evicted by preemption")
        if self.blocked:
            parts.append(f"{counted(len(self.blocked), 'eviction')} blocked")
        lost = len(self.gone) - removed
        if lost:
            parts.append(f"{counted(lost, 'pod')} gone and not created anew")
        parts += _left_text(self)
        return f"{', '.join(parts)}, after {seconds_text(self.seconds)}"

    @property
    def leaves_pods(self) -> bool:
        """Whether something is left without a node: pending, or gone without being meant to go."""
        return bool(self.pending) or any(not each.wanted for each in self.gone)

    @property
    def makes_worse(self) -> bool:
        """Whether a pod lost its node for good, or a change could not be completed.

        Pods that were pending before do not count.
        """
        return (
            any(not each.was_pending for each in self.pending)
            or any(not each.wanted for each in self.gone)
            or any(each.blocked or each.unfinished for each in self.changes)
        )

    @property
    def blocked(self) -> list[BlockedEviction]:
        """All evictions that were refused to the end."""
        return [each for change in self.changes for each in change.blocked]


PodOutcome = MovedPod | PendingPod | NewPod | GonePod


def _is_named(each: PodOutcome, name: str) -> bool:
    """Whether a pod, the one in its place or its workload has the name, or ends in `/name`."""
    names = [each.pod, each.workload, each.new_pod if isinstance(each, MovedPod) else ""]
    return any(f"/{text}".endswith(f"/{name}") for text in names if text)


def _left_text(plan: Plan) -> list[str]:
    """How many pods have no node now, and how many of those had none before."""
    fresh = [each for each in plan.pending if not each.was_pending]
    unknown = sum(bool(each.unknown) for each in fresh)
    left, before = len(fresh) - unknown, len(plan.pending) - len(fresh)
    none = "no more pods without a node" if before else "no pod without a node"
    parts = [f"{counted(left, 'pod')} without a node" if left else none]
    if unknown:
        parts.append(f"{counted(unknown, 'pod')} whose node is not known")
    if before:
        parts.append(f"{counted(before, 'pod')} pending as before")
    return parts


def seconds_text(seconds: float) -> str:
    """A duration, in seconds or minutes."""
    return f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}m"
