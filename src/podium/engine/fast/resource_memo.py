"""Verdict and score sum of a row, cached by the row's resource numbers.

Many rows have been in the same state before: nodes of one size that hold the same number of equal
pods. Rules of scope `RESOURCES` answer the same for them, so the arithmetic is done once per state.
Rules that read more of a row (ports, disks, other pods) are asked each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.pipelines.scoring import run_row_scores
from podium.engine.rows.rows import as_int

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.framework.profile import Weighted
    from podium.engine.framework.rule import Positioned
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass

#: How many states are kept; when there are more, all are dropped.
MAX_STATES = 4096

#: Verdict code, position of the rule that gave it, sum of scores, whether one is out of range.
RowAnswer = tuple[int, int, int, bool]


class ResourceMemo:
    """The answers of the rules of one pod class that depend on the pods of a row."""

    __slots__ = ("_highest", "_known", "_other", "_resource_rules", "_weighted", "hits", "misses")

    def __init__(
        self,
        cls: PodClass,
        rules: Sequence[Positioned],
        weighted: Sequence[Weighted],
        highest: int | None,
    ) -> None:
        #: How often a state was known, and how often it was not.
        self.hits = self.misses = 0
        self._weighted = weighted
        self._highest = highest
        self._resource_rules = [p for p in rules if p.rule.scope(cls) is Scope.RESOURCES]
        self._other = [p for p in rules if p.rule.scope(cls) is not Scope.RESOURCES]
        keeps = all(each.priority.scope(cls) is Scope.RESOURCES for each in weighted)
        self._known: dict[Hashable, RowAnswer] | None = {} if keeps else None

    def answer(self, pod: Incoming, at: OneRow) -> RowAnswer:
        """The answer for one row, from the cache if its numbers were seen before."""
        found = self._by_resources(pod, at)
        if self._other:
            code, position = run_filters_on_row(pod, at, self._other)
            if position < found[1]:
                return code, position, found[2], found[3]
        return found

    def _by_resources(self, pod: Incoming, at: OneRow) -> RowAnswer:
        if self._known is None:
            return self._computed(pod, at)
        state = at.resource_numbers()
        known = self._known.get(state)
        if known is not None:
            self.hits += 1
        else:
            self.misses += 1
            if len(self._known) >= MAX_STATES:
                self._known.clear()
            known = self._known[state] = self._computed(pod, at)
        return known

    def _computed(self, pod: Incoming, at: OneRow) -> RowAnswer:
        code, position = run_filters_on_row(pod, at, self._resource_rules)
        scores, wrong = run_row_scores(pod, at, self._weighted, highest=self._highest)
        return code, position, as_int(scores), bool(wrong)
