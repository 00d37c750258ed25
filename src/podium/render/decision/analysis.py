"""Facts that follow from a decision: groups of rejections, a ranking, differences of scores.

How they are worded and laid out is up to the modules that print them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision, ScoreColumn
    from podium.engine.state.verdicts import Verdict


#: The outcome of an attempt in one word.
PLACED, NOMINATED, UNSCHEDULABLE = "placed", "nominated", "unschedulable"
HELD, ERROR = "held", "error"


class RejectionGroup(msgspec.Struct, frozen=True):
    """Nodes that were rejected for the same reasons."""

    predicate: str
    reasons: tuple[str, ...]
    #: Whether evicting pods could make a node fit.
    curable: bool
    count: int
    #: Their names in node order; empty if the decision was made without recording.
    nodes: tuple[str, ...] = ()
    #: Whether an extender rejected them.
    extender: bool = False
    #: Each predicate with its reasons, where several took part.
    by_rule: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ScoreGap(msgspec.Struct, frozen=True):
    """The difference that one priority makes between two nodes."""

    priority: str
    weight: int
    mine: int
    theirs: int

    @property
    def points(self) -> int:
        """The weighted difference, positive if the first node is better."""
        return (self.mine - self.theirs) * self.weight


def rejection_groups(decision: Decision) -> list[RejectionGroup]:
    """The rejections, the largest group first; groups of one size in node order."""
    names: dict[int, list[str]] = {}
    for name, code in zip(decision.examined, decision.codes.tolist(), strict=False):
        if code > 0:
            names.setdefault(code, []).append(name)
    found = []
    for code in names or sorted(decision.histogram):
        verdict = decision.verdict(code)
        count, where = decision.histogram[code], tuple(names.get(code, ()))
        several = verdict.by_rule if len(verdict.by_rule) > 1 else ()
        found.append(
            RejectionGroup(
                verdict.predicate,
                verdict.reasons,
                verdict.curable,
                count,
                where,
                by_rule=several,
            )
        )
    by_message: dict[tuple[str, ...], list[str]] = {}
    for name, failed in decision.extender_failed.items():
        by_message.setdefault(tuple(failed), []).append(name)
    for messages, nodes in by_message.items():
        where = tuple(nodes)
        found.append(
            RejectionGroup(
                "extender", messages, curable=True, count=len(where), nodes=where, extender=True
            )
        )
    return sorted(found, key=lambda group: -group.count)


def ranking(decision: Decision) -> list[int]:
    """Positions among the feasible nodes, the chosen one first, then by descending total."""
    if decision.totals is None:
        return list(range(len(decision.feasible)))
    order = np.argsort(-decision.totals, kind="stable").tolist()
    if decision.node is not None and decision.node in decision.feasible:
        winner = list(decision.feasible).index(decision.node)
        order.remove(winner)
        order.insert(0, winner)
    return [int(position) for position in order]


def runner_up(decision: Decision) -> int | None:
    """The position of the best node with a lower total than the chosen one; None without one."""
    if decision.totals is None:
        return None
    order = ranking(decision)
    best = decision.totals[order[0]]
    return next((at for at in order if decision.totals[at] < best), None)


def margin(decision: Decision) -> tuple[int, int, int] | None:
    """The positions of the chosen node and of the runner-up, and the points between them.

    None if there is no runner-up, or if no priority makes the difference.
    """
    second = runner_up(decision)
    if decision.totals is None or second is None:
        return None
    first = ranking(decision)[0]
    if not score_gaps(decision, first, second):
        return None
    return first, second, int(decision.totals[first] - decision.totals[second])


def differing_columns(decision: Decision) -> tuple[list[ScoreColumn], list[ScoreColumn]]:
    """The priorities whose scores differ between nodes, and those whose scores are all equal."""
    differing: list[ScoreColumn] = []
    same: list[ScoreColumn] = []
    for column in decision.scores:
        uneven = len(column.score) and int(column.score.min()) != int(column.score.max())
        (differing if uneven else same).append(column)
    return differing, same


def score_gaps(decision: Decision, first: int, second: int) -> list[ScoreGap]:
    """The differences between two feasible nodes, the largest first."""
    found = [
        ScoreGap(column.name, column.weight, int(column.score[first]), int(column.score[second]))
        for column in decision.scores
    ]
    return sorted((gap for gap in found if gap.points), key=lambda gap: -abs(gap.points))


def extender_points(decision: Decision) -> np.ndarray:
    """The part of each total that no priority accounts for: the scores of extenders."""
    assert decision.totals is not None
    rest = decision.totals.copy()
    if not decision.scores:
        return np.zeros_like(rest)  # without priorities every total is 1
    for column in decision.scores:
        rest -= column.score * column.weight
    return rest


def outcome(decision: Decision) -> str:
    """The outcome of the attempt in one word."""
    if decision.error:
        return ERROR
    if decision.node is not None:
        return PLACED
    if decision.held is not None:
        return HELD
    is_nominated = decision.preemption is not None and decision.preemption.node is not None
    return NOMINATED if is_nominated else UNSCHEDULABLE


@dataclass(frozen=True, slots=True)
class ResourceRoom:
    """One resource on one node: how much the pod requests, and how much there is."""

    resource: str
    wanted: int
    used: int
    allocatable: int
    #: What pods that are nominated to the node request.
    promised: int = 0

    @property
    def free(self) -> int:
        """The allocatable amount that no pod on the node, or nominated to it, requests."""
        return self.allocatable - self.used - self.promised


@dataclass(slots=True)
class NodeReport:
    """What a decision says about one node."""

    node: str
    #: Why it was rejected; None if it fits or was not examined.
    verdict: Verdict | None = None
    #: Its position among the feasible nodes, if it is one.
    position: int | None = None
    #: Why an extender rejected it.
    messages: list[str] = field(default_factory=list)
    room: list[ResourceRoom] = field(default_factory=list)


def node_report(decision: Decision, node: str) -> NodeReport:
    """What the decision says about one node."""
    report = NodeReport(node, messages=list(decision.extender_failed.get(node, ())))
    if node in decision.examined:
        code = int(decision.codes[list(decision.examined).index(node)])
        report.verdict = decision.verdict(code) if code > 0 else None
    if node in decision.feasible:
        report.position = list(decision.feasible).index(node)
    return report
