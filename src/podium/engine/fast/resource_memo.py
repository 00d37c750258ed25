"""What follows from the room on a row, remembered by the numbers that it follows from.

Many rows have been in the same state before: nodes of one size that hold so many pods of a kind.
Resources fit and score alike there, so the arithmetic is done once per state. Rules that look at
more than numbers (labels, ports, other pods) are asked each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from podium.engine.framework.profile import Weighted
    from podium.engine.framework.rule import Predicate, Priority
    from podium.engine.rows.one import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass

#: Fits: later than any predicate.
NEVER = 1 << 14
#: So many states are remembered.
STATES = 4096

Numbered = tuple[int, "Predicate"]


def first_verdict(pod: Incoming, at: OneRow, predicates: list[Numbered]) -> tuple[int, int]:
    """The first verdict that is no fit, and the place of the predicate that gave it."""
    for place, predicate in predicates:
        code = predicate.reject(pod, at)
        if code:
            return int(code), place
    return FITS, NEVER


class Rooms:
    """The rules of a class that depend on the pods of a row."""

    __slots__ = ("_known", "_other", "_plain", "_weighted")

    def __init__(self, cls: PodClass, predicates: list[Numbered], weighted: list[Weighted]) -> None:
        self._weighted = weighted
        self._plain = [p for p in predicates if _is_arithmetic(p[1], cls)]
        self._other = [p for p in predicates if p not in self._plain]
        arithmetic = all(_is_arithmetic(each.priority, cls) for each in weighted)
        self._known: dict[tuple[int, ...], tuple[int, int, int]] | None = {} if arithmetic else None

    def ask(self, pod: Incoming, at: OneRow) -> tuple[int, int, int]:
        """The verdict, the place of who gave it, and the sum of the scores."""
        code, place, scores = self._reckon(pod, at)
        if self._other:
            found, there = first_verdict(pod, at, self._other)
            if there < place:
                return found, there, scores
        return code, place, scores

    def _reckon(self, pod: Incoming, at: OneRow) -> tuple[int, int, int]:
        if self._known is None:
            return self._work_out(pod, at)
        state = at.room()
        known = self._known.get(state)
        if known is None:
            if len(self._known) >= STATES:
                self._known.clear()
            known = self._known[state] = self._work_out(pod, at)
        return known

    def _work_out(self, pod: Incoming, at: OneRow) -> tuple[int, int, int]:
        code, place = first_verdict(pod, at, self._plain)
        scores = sum(each.priority.score(pod, at) * each.weight for each in self._weighted)
        return code, place, scores


def _is_arithmetic(rule: Predicate | Priority, cls: PodClass) -> bool:
    """Whether its answer follows from what the row has and what its pods use up alone."""
    ask = getattr(rule, "room_only", None)
    return bool(ask is not None and ask(cls))
