"""What a decision amounts to: groups of rejections, a ranking, what separated two nodes.

Facts only; how they are worded and laid out is for the modules that print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision, ScoreColumn


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that were turned down for the same reasons."""

    predicate: str
    reasons: tuple[str, ...]
    #: Whether evicting pods could change the answer.
    curable: bool
    count: int
    #: Their names in node order; empty when the decision was made without recording.
    nodes: tuple[str, ...] = ()
    #: Whether an extender said no.
    extender: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """What one priority contributed to the distance between two nodes."""

    priority: str
    weight: int
    mine: int
    theirs: int

    @property
    def points(self) -> int:
        """Weighted, from the point of view of the first node."""
        return (self.mine - self.theirs) * self.weight


def groups(decision: Decision) -> list[Group]:
    """The rejections, the largest group first; equal ones in node order."""
    names: dict[int, list[str]] = {}
    for name, code in zip(decision.examined, decision.codes.tolist(), strict=False):
        if code > 0:
            names.setdefault(code, []).append(name)
    found = []
    for code in names or sorted(decision.histogram):
        verdict = decision.verdict(code)
        count, where = decision.histogram[code], tuple(names.get(code, ()))
        found.append(Group(verdict.predicate, verdict.reasons, verdict.curable, count, where))
    by_message: dict[tuple[str, ...], list[str]] = {}
    for name, messages in decision.extender_failed.items():
        by_message.setdefault(tuple(messages), []).append(name)
    for said, nodes in by_message.items():
        where = tuple(nodes)
        found.append(
            Group("extender", said, curable=True, count=len(where), nodes=where, extender=True)
        )
    return sorted(found, key=lambda group: -group.count)


def ranking(decision: Decision) -> list[int]:
    """Positions among the feasible nodes, best total first, the chosen node before its equals."""
    if decision.totals is None:
        return list(range(len(decision.feasible)))
    order = np.argsort(-decision.totals, kind="stable").tolist()
    if decision.node is not None and decision.node in decision.feasible:
        winner = list(decision.feasible).index(decision.node)
        order.remove(winner)
        order.insert(0, winner)
    return [int(position) for position in order]


def telling(decision: Decision) -> tuple[list[ScoreColumn], list[ScoreColumn]]:
    """The priorities that made a difference, and those that gave every node the same."""
    differing: list[ScoreColumn] = []
    same: list[ScoreColumn] = []
    for column in decision.scores:
        uneven = len(column.score) and int(column.score.min()) != int(column.score.max())
        (differing if uneven else same).append(column)
    return differing, same


def gaps(decision: Decision, first: int, second: int) -> list[Gap]:
    """What separates two feasible nodes, what weighs most first."""
    found = [
        Gap(column.name, column.weight, int(column.score[first]), int(column.score[second]))
        for column in decision.scores
    ]
    return sorted((gap for gap in found if gap.points), key=lambda gap: -abs(gap.points))


def extender_points(decision: Decision) -> np.ndarray:
    """What extenders added to each total: the part that no priority accounts for."""
    assert decision.totals is not None
    rest = decision.totals.copy()
    if not decision.scores:
        return np.zeros_like(rest)  # without any priority every node has 1
    for column in decision.scores:
        rest -= column.score * column.weight
    return rest
