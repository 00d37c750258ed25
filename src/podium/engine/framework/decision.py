"""The result of a scheduling attempt, and everything that led to it.

Command line, events, pages and logs are renderers of a `Decision`. Columns in it run over
`examined` (verdicts) or `feasible` (scores); names are taken when the decision is made, so it
stays true when the cluster moves on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from podium.engine.state.reservation import DevicePlan, VolumePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.causes import CausedRejection, PreemptionCauses, ScoreCause
    from podium.engine.framework.rule import Permission, Refused
    from podium.engine.framework.trace import DecisionTrace
    from podium.engine.state.reservation import Reservation
    from podium.engine.state.verdicts import Verdict, Verdicts


#: Stands in the list of rejecting plugins for all extenders, as in kube-scheduler.
EXTENDER = "Extender"


class ScoreColumn(msgspec.Struct, frozen=True):
    """The scores that one rule gave to the feasible nodes."""

    name: str
    weight: int
    raw: np.ndarray
    score: np.ndarray
    #: Set when the rule gave every node the same score without evaluating nodes.
    uniform: bool = False


class Victims(msgspec.Struct, frozen=True):
    """The pods to evict from one node."""

    pods: tuple[str, ...]  #: namespace/name, in the order in which the search listed them
    uids: tuple[str, ...]
    priorities: tuple[int, ...]
    violations: int = 0
    #: Earliest start time among the victims of the highest priority; infinity if unknown.
    earliest: float = 0.0


class Preemption(msgspec.Struct, frozen=True):
    """The outcome of preemption for a pod that fits on no node."""

    eligible: bool
    potential: tuple[str, ...] = ()
    candidates: Mapping[str, Victims] = msgspec.field(default_factory=dict)
    node: str | None = None
    #: All nodes as good as the chosen one, itself included, when there are several.
    tie: tuple[str, ...] = ()
    #: The criterion that chose between the candidates.
    criterion: str = ""
    #: Pods whose nomination is cleared: uids and keys.
    cleared: tuple[tuple[str, str], ...] = ()
    #: The error of an extender that prevented preemption.
    error: str = ""
    #: The nomination of the pod itself: a node, "" when it is cleared, None when it is kept.
    nomination: str | None = None

    @property
    def victims(self) -> tuple[str, ...]:
        """The uids of the pods to evict from the chosen node."""
        return () if self.node is None else self.candidates[self.node].uids


class ClaimRelease(msgspec.Struct, frozen=True):
    """A resource claim of the pod that does not fit where the pod could run."""

    claim: str  #: namespace/name
    uid: str
    #: Whether the claim is deleted; otherwise it loses its allocation.
    delete: bool = False


#: What a decision has as long as it is given nothing else; never written to.
NO_REJECTIONS: Mapping[int, int] = MappingProxyType({})
NO_CODES = np.zeros(0, np.int32)
NO_CODES.flags.writeable = False
NO_MESSAGES: Mapping[str, list[str]] = MappingProxyType({})
NO_ERRORS: Mapping[str, str] = MappingProxyType({})
NO_RESERVATIONS: Mapping[str, Reservation] = MappingProxyType({})


class Decision:
    """The node chosen for a pod, or why there is none.

    Thousands are made each second, so only what differs from the values below is set.
    """

    node: str | None = None
    error: str = ""
    #: The plugin that failed, and the nodes on which it did, with the error of each.
    failed_plugin: str = ""
    node_errors: Mapping[str, str] = NO_ERRORS
    #: Nodes looked at, in order, and the verdict code of each; filled when recording.
    examined: Sequence[str] = ()
    codes: np.ndarray = NO_CODES
    verdicts: Verdicts | None = None
    #: How many nodes got which verdict.
    histogram: Mapping[int, int] = NO_REJECTIONS
    #: Nodes dropped by extenders, with their message; and those that evicting pods cannot help.
    extender_failed: Mapping[str, list[str]] = NO_MESSAGES
    extender_hopeless: frozenset[str] = frozenset()
    feasible_count: int = 0
    feasible: Sequence[str] = ()
    scores: tuple[ScoreColumn, ...] = ()
    #: Weighted sums over `feasible`; None when nothing was scored.
    totals: np.ndarray | None = None
    #: How many nodes shared the best total, and the cursor that chose among them.
    tied: int = 0
    cursor: int = 0
    #: Their names, filled when recording.
    best: Sequence[str] = ()
    #: What reserve rules set aside on the node, by the name of the rule.
    reservations: Mapping[str, Reservation] = NO_RESERVATIONS
    #: Permit rules that let the pod wait before it may be bound, by name.
    waits: tuple[tuple[str, Permission], ...] = ()
    preemption: Preemption | None = None
    #: The claim that the post-filters give back.
    released: ClaimRelease | None = None
    #: Status code and message of the post-filters.
    post_code: str = ""
    post_message: str = ""
    #: Why the pod was held back by a gate, or refused by a rule for every node.
    held: Refused | None = None
    refused: Refused | None = None
    #: The node nominated to the pod, when it was filtered first and chosen.
    nominated: str | None = None
    #: What led to the reasons, where an explanation was asked for (`library.reasoning.causes`).
    causes: tuple[CausedRejection, ...] = ()
    score_causes: tuple[ScoreCause, ...] = ()
    preemption_causes: PreemptionCauses | None = None
    #: What was computed step by step, where that was asked for (`engine.cycle.trace`).
    trace: DecisionTrace | None = None
    #: How many nodes were taken from the node order, and whether the last one was dropped again.
    consumed: int = 0
    dropped: bool = False
    #: The time for which it was made, in seconds since 1970.
    decided_at: float = 0.0
    #: The text of a pod that has no node because of its group.
    group_message: str = ""
    #: What kept answers gave otherwise, where the decision was verified (`cluster.verification`).
    differences: tuple[str, ...] = ()

    def __init__(self, pod: str, uid: str, profile: str, nodes: int, **known: Any) -> None:
        """*nodes* is how many nodes the cluster has; *known* are values of attributes above."""
        self.pod = pod
        self.uid = uid
        self.profile = profile
        self.nodes = nodes
        for name, value in known.items():
            if name not in Decision.__annotations__:
                raise TypeError(f"a decision has no attribute {name!r}")
            setattr(self, name, value)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"Decision({shown})"

    def without_node(self) -> Decision:
        """The same decision for a pod that does not go to the node after all."""
        other = copy(self)
        other.node, other.reservations = None, NO_RESERVATIONS
        return other

    def reserved(self, rule: str) -> object | None:
        """What a reserve rule set aside for the pod; None for nothing."""
        found = self.reservations.get(rule)
        return None if found is None else found.value

    @property
    def volumes(self) -> VolumePlan | None:
        """The volumes reserved for the claims of the pod; None when there is nothing to bind."""
        found = (each.volumes for each in self.reservations.values()) if self.reservations else ()
        return next(filter(None, found), None)

    @property
    def devices(self) -> DevicePlan | None:
        """The devices reserved for the claims of the pod; None for a pod without claims."""
        found = (each.devices for each in self.reservations.values()) if self.reservations else ()
        return next(filter(None, found), None)

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason was given; a node may give several."""
        counted: Counter[str] = Counter()
        for code, number in self.histogram.items():
            for reason in self.verdict(code).reasons:
                counted[reason] += number
        for messages in self.extender_failed.values():
            counted.update(messages)
        return counted

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected the pod; none when an error ended the attempt."""
        if self.error:
            return frozenset()
        names: set[str] = set()
        for code in self.histogram:
            names.update(self.verdict(code).plugins)
        if self.extender_failed:
            names.add(EXTENDER)
        for refused in (self.refused, self.held):
            if refused is not None:
                names.update(refused.plugins)
        return frozenset(names)

    @property
    def message(self) -> str:
        """The sentence users see when no node fits; empty otherwise."""
        if self.group_message:
            return self.group_message
        if self.node is not None or self.error:
            return self.error
        if self.held is not None:
            return self.held.reason
        fit = self.fit_message
        return f"{fit} {self.post_message}" if self.post_message else fit

    @property
    def fit_message(self) -> str:
        """The part of the sentence that tells why no node fits, or the error."""
        if self.error:
            return self.error
        if self.refused is not None:
            return f"0/{self.nodes} nodes are available: {self.refused.reason}."
        return fit_message(self.nodes, self.reasons)

    def verdict(self, code: int) -> Verdict:
        """What a code stands for."""
        assert self.verdicts is not None
        return self.verdicts[code]

    def failed(self) -> dict[str, list[str]]:
        """Node -> its reasons, for every examined node that does not fit."""
        found = {
            name: list(self.verdict(code).reasons)
            for name, code in zip(self.examined, self.codes.tolist(), strict=True)
            if code > 0
        }
        for name, messages in self.extender_failed.items():
            found.setdefault(name, []).extend(messages)
        return found


def fit_message(nodes: int, reasons: Counter[str]) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 …`; the parts sort as text."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items())
    return f"0/{nodes} nodes are available: {', '.join(parts)}."
