"""Rules on resource numbers over many changed rows, in as few calls of NumPy as there can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.pipelines.filtering import LAST
from podium.engine.rows.resource_block import resource_block, row_numbers
from podium.engine.rows.rows import MOST_IN_TABLE, fill_table, lowest

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.framework.profile import Weighted
    from podium.engine.framework.rule import Positioned
    from podium.engine.rows.resource_block import BlockFilter, BlockScore
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

#: A verdict and the position of the rule that gave it in one number, so that the lower one counts:
#: the position begins at this bit,
SHIFT = 32
#: the verdict code is in these bits,
CODE = (1 << SHIFT) - 1
#: and this is the number of a row that no rule rejects.
FITTING = LAST << SHIFT


class BlockRules:
    """The filter and the scores of one class of pods that depend on the resource numbers of a row.

    Made where there are no other rules that depend on the pods of a row, and all of these rules
    have a way to read a block.
    """

    __slots__ = (
        "_for_many",
        "_held",
        "_position",
        "_verdicts",
        "alike",
        "filter",
        "scores",
        "verdict_of_bits",
    )

    def __init__(
        self,
        view: View,
        position: int,
        rule: BlockFilter | None,
        scores: Sequence[tuple[int, BlockScore]],
        *,
        for_many: bool = False,
    ) -> None:
        """The filter with its position, and the scores with their weights.

        *for_many*: they answer for many classes of pods together.
        """
        self._for_many = for_many
        #: For which nodes `holds` was last found out, and what.
        self._held = (-1, -1), False
        self.filter, self._position, self.scores = rule, position, scores
        self._verdicts = view.verdicts
        #: Equal for those that answer together; see `stacked`.
        self.alike: Hashable = (
            position,
            None if rule is None else rule.alike,
            *((weight, score.alike) for weight, score in scores),
        )
        #: The number of a verdict by the bits of its reasons; -1 where it is not known yet.
        self.verdict_of_bits = np.full(1 << (len(rule.reasons) if rule else 0), -1, np.int64)
        self.verdict_of_bits[0] = FITTING

    def answers(
        self, view: View, rows: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | int] | None:
        """Verdicts of some rows (None: all fit) and sums of scores; None if rules must be asked.

        Of many classes of pods, there is a line for each.
        """
        if not self.holds(view):
            return None
        block = resource_block(view, rows, for_many=self._for_many)
        if block is None:
            return None
        bits = self.filter.bits(block) if self.filter is not None else None
        sums: np.ndarray | int = 0
        for weight, score in self.scores:
            given = score.scores(block)
            if weight != 1:
                given *= weight
            sums = given if isinstance(sums, int) else np.add(sums, given, out=sums)
        return None if bits is None else self._verdicts_of(bits), sums

    def holds(self, view: View) -> bool:
        """Whether the scores may be used, as the nodes are now."""
        now = (view.journal.epoch, view.journal.node_changes)
        if self._held[0] != now:
            self._held = now, all(score.holds(view) for _, score in self.scores)
        return self._held[1]

    def answer_on(self, view: View, row: int) -> tuple[int, int] | None:
        """Verdict and sum of scores of one row; None if rules must be asked."""
        if not self.holds(view):
            return None
        numbers = row_numbers(view, row)
        if numbers is None:
            return None
        bits = self.filter.bits_on(numbers) if self.filter is not None else 0
        total = 0
        for weight, score in self.scores:
            total += score.score_on(numbers) * weight
        if not bits:
            return FITTING, total
        verdict = self.verdict_of_bits.item(bits)
        return verdict if verdict >= 0 else self._verdicts_of(np.array([bits])).item(), total

    def stacked(self, view: View, rules: Sequence[BlockRules]) -> BlockRules:
        """These rules of several classes of pods, which are alike, as one."""
        filters = [each.filter for each in rules]
        scores = [
            (weight, score.stacked([each.scores[i][1] for each in rules]))
            for i, (weight, score) in enumerate(self.scores)
        ]
        rule = None if self.filter is None else self.filter.stacked(filters)
        return BlockRules(view, self._position, rule, scores, for_many=True)

    def _verdicts_of(self, bits: np.ndarray) -> np.ndarray:
        found = self.verdict_of_bits.take(bits)
        if lowest(found, None) < 0:
            rule, position = self.filter, self._position
            assert rule is not None
            fill_table(self._verdicts, rule.name, rule.reasons, bits[found < 0])
            codes = self._verdicts.table(rule.name, rule.reasons)
            known = np.flatnonzero(codes > 0)
            self.verdict_of_bits[known] = position << SHIFT | codes[known].astype(np.int64)
            found = self.verdict_of_bits.take(bits)
        return found


def block_rules(
    pod: Incoming,
    view: View,
    filters: Sequence[Positioned],
    weighted: Sequence[Weighted],
    highest: int | None,
) -> BlockRules | None:
    """The rules that depend on the pods of a row, if blocks are all that they need."""
    if len(filters) > 1:
        return None
    rule = filters[0].rule.of_block(pod, view) if filters else None
    if filters and (rule is None or len(rule.reasons) > MOST_IN_TABLE):
        return None
    scores = [(each.weight, each.priority.of_block(pod, view)) for each in weighted]
    made = [(weight, score) for weight, score in scores if score is not None]
    if len(made) < len(scores) or (not made and not filters):
        return None
    if highest is not None and any(score.highest > highest for _, score in made):
        return None
    return BlockRules(view, filters[0].position if filters else 0, rule, made)
