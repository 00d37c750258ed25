"""Verdict and score sum of a row, cached by the row's resource numbers.

Many rows have been in the same state before: nodes of one size that hold the same number of equal
pods. Rules of scope `RESOURCES` answer the same for them, so the arithmetic is done once per state.
Rules that read more of a row (ports, disks, other pods) are asked each time. Where most states are
new, as with pods of many sizes, none are remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.fast.block_rules import SHIFT
from podium.engine.framework.rule import Scope
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.pipelines.scoring import run_row_scores
from podium.engine.rows.rows import OneRow, as_int

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.fast.block_rules import BlockRules
    from podium.engine.framework.profile import Weighted
    from podium.engine.framework.rule import Positioned
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

#: How many states are kept; when there are more, all are dropped.
MAX_STATES = 4096
#: After so many new states, none are kept any more if fewer were known.
STATES_TO_JUDGE = 256

#: Verdict with the position of the rule that gave it, as in `block_rules`; sum of scores; whether
#: one of them is out of range.
RowAnswer = tuple[int, int, bool]


class ResourceMemo:
    """The answers of the rules of one pod class that depend on the pods of a row."""

    __slots__ = (
        "_blocks",
        "_highest",
        "_known",
        "_other",
        "_resource_rules",
        "_weighted",
        "hits",
        "misses",
    )

    def __init__(
        self,
        cls: PodClass,
        rules: Sequence[Positioned],
        weighted: Sequence[Weighted],
        highest: int | None,
        blocks: BlockRules | None,
    ) -> None:
        """*blocks* are the rules on resource numbers in another form, where there is one."""
        #: How often a state was known, and how often it was not.
        self.hits = self.misses = 0
        self._weighted = weighted
        self._highest = highest
        self._blocks = blocks
        self._resource_rules = [p for p in rules if p.rule.scope(cls) is Scope.RESOURCES]
        self._other = [p for p in rules if p.rule.scope(cls) is not Scope.RESOURCES]
        keeps = all(each.priority.scope(cls) is Scope.RESOURCES for each in weighted)
        self._known: dict[Hashable, RowAnswer] | None = {} if keeps else None

    def answer(self, pod: Incoming, view: View, row: int) -> RowAnswer:
        """The answer for one row, from the cache if its numbers were seen before."""
        states = self._known
        if states is None:
            found = self._computed(pod, view, row)
        else:
            state = view.resource_numbers(row)
            known = states.get(state)
            if known is not None:
                self.hits += 1
                found = known
            else:
                found = self._computed(pod, view, row)
                self._remember(state, found, states)
        if not self._other:
            return found
        code, position = run_filters_on_row(pod, OneRow(view, row), self._other)
        verdict = position << SHIFT | code
        return (verdict, found[1], found[2]) if verdict < found[0] else found

    def _remember(
        self, state: Hashable, answer: RowAnswer, states: dict[Hashable, RowAnswer]
    ) -> None:
        """Keep the answer for a state that was new, unless most of them are."""
        self.misses += 1
        if self.misses > STATES_TO_JUDGE and self.hits < self.misses:
            self._known = None
            return
        if len(states) >= MAX_STATES:
            states.clear()
        states[state] = answer

    def _computed(self, pod: Incoming, view: View, row: int) -> RowAnswer:
        found = self._blocks.answer_on(view, row) if self._blocks is not None else None
        if found is not None:
            return (*found, False)
        at = OneRow(view, row)
        code, position = run_filters_on_row(pod, at, self._resource_rules)
        scores, wrong = run_row_scores(pod, at, self._weighted, highest=self._highest)
        return position << SHIFT | code, as_int(scores), bool(wrong)
