"""The answers of some rules for every row, with what is derived from them.

`AnswerColumns.write` is the only way to change an answer. It writes the verdict and the sum of a
row, how many nodes got which verdict, and the index of the best rows, so that none of these can be
true while another one is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.fast.score_index import UNFIT, ScoreIndex
from podium.engine.pipelines.filtering import LAST
from podium.engine.rows.rows import ManyRows
from podium.engine.state.verdicts import histogram

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from podium.engine.framework.tuning import Tuning
    from podium.engine.rows.row_groups import Grouping, GroupLayout, GroupLayouts, RowGroups
    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View

#: A verdict and the position of the rule that gave it in one number, so that the lower one counts:
#: the position begins at this bit,
SHIFT = 32
#: the verdict code is in these bits,
CODE = (1 << SHIFT) - 1
#: and this is the number of a row that no rule rejects.
FITTING = LAST << SHIFT
#: An index has paid if it was kept for so many rounds with few changed rows.
WORTH_INDEXING = 50
#: Indexes are kept for so many groupings.
MOST_GROUPINGS = 8
_highest = np.maximum.reduce


class AnswerColumns:
    """A verdict and a sum of scores per row, their counts, and the rows by group and by sum."""

    #: The verdict of each row with the position of the rule that gave it, and the sum of its
    #: scores; `UNFIT` if the pod does not fit on the row.
    verdicts: np.ndarray
    scores: np.ndarray
    _indexes: dict[Grouping, ScoreIndex]
    #: Groupings that tell too many rows apart for an index.
    _too_many: set[Grouping]
    _rejections: dict[int, int] | None
    #: An order, the feasible rows in it, and facts of these; the order is None if they changed.
    _feasible: tuple[np.ndarray | None, np.ndarray, dict[Hashable, Any]]

    def __init__(self, view: View, layouts: GroupLayouts, tuning: Tuning) -> None:
        self._view = view
        self._layouts = layouts
        self._tuning = tuning
        #: How many times in a row only a few rows had changed.
        self._small_changes = 0
        #: How many times that must be before an index is made; more, if the last did not pay.
        self._rounds_to_index = tuning.steady_rounds
        #: How many times it had been when an index was last made.
        self._indexed_at = 0
        self.start_over()

    # Writing --------------------------------------------------------------------------------------

    def start_over(self) -> None:
        """Forget all answers: no row was evaluated yet."""
        size = self._view.nodes.capacity
        self.verdicts = np.full(size, FITTING, np.int64)
        self.scores = np.full(size, UNFIT, np.int64)
        self._indexes, self._too_many = {}, set()
        #: How many nodes got which verdict, once that was asked for; how many were rejected.
        self._rejections = None
        self._rejected = 0
        #: Whether a decision may have them, so that the next change is made to a copy.
        self._are_rejections_shared = False
        self._feasible = (None, self.scores, {})

    def start_round(self, changed: int) -> None:
        """Note how many rows are to be written; drop the indexes if they cost more to keep."""
        if changed <= self._tuning.few_changes:
            self._small_changes += 1
            return
        if self._indexes or self._too_many:
            lasted = self._small_changes - self._indexed_at
            start = self._tuning.steady_rounds
            self._rounds_to_index = start if lasted >= WORTH_INDEXING else self._rounds_to_index * 2
            self._indexes, self._too_many = {}, set()
        self._small_changes = 0

    def write(self, rows: np.ndarray, verdicts: np.ndarray, sums: np.ndarray) -> None:
        """Write the answers of some rows, each of which is named once."""
        if self._indexes:  # there are some only while few rows change
            for each in zip(rows.tolist(), verdicts.tolist(), sums.tolist(), strict=True):
                self.write_row(*each)
            return
        before = self.verdicts.take(rows)
        self.verdicts[rows], self.scores[rows] = verdicts, sums
        places = (before != verdicts).nonzero()[0]
        if len(places):
            self._note_many(rows[places], before[places], verdicts[places])

    def write_row(self, row: int, verdict: int, total: int) -> None:
        """Write the answer of one row."""
        before = self.verdicts.item(row)
        self.verdicts[row] = verdict
        self.scores[row] = total
        if before != verdict:
            self._note_verdict(row, before, verdict)
        for index in self._indexes.values():
            index.put(row, total)

    def _note_many(self, rows: np.ndarray, before: np.ndarray, verdicts: np.ndarray) -> None:
        """Bring the feasible rows and the counts up to date: all of these rows differ."""
        if ((before == FITTING) != (verdicts == FITTING)).any():
            self._feasible = (None, self.scores, {})
        if self._rejections is None:
            return
        known = self._view.nodes.known[rows]
        for codes, sign in ((verdicts[known] & CODE, 1), (before[known] & CODE, -1)):
            found, numbers = np.unique(codes, return_counts=True)
            for code, number in zip(found.tolist(), numbers.tolist(), strict=True):
                if code:
                    self._add(code, sign * number)

    def _note_verdict(self, row: int, before: int, verdict: int) -> None:
        """Bring what is derived from verdicts up to date: the row has another one."""
        if FITTING in (before, verdict):
            self._feasible = (None, self.scores, {})
        if self._rejections is not None and self._view.nodes.known[row]:
            for code, number in ((verdict & CODE, 1), (before & CODE, -1)):
                if code:
                    self._add(code, number)

    def _add(self, code: int, number: int) -> None:
        """So many nodes more, or fewer, have a verdict that rejects."""
        counts = self._rejections
        assert counts is not None
        if self._are_rejections_shared:
            self._are_rejections_shared = False
            counts = self._rejections = counts.copy()
        counts[code] = counts.get(code, 0) + number
        self._rejected += number
        if not counts[code]:
            del counts[code]

    def note_nodes(self, rows: frozenset[int]) -> None:
        """The nodes of these rows changed: keep the indexes whose rows are in the same groups."""
        self._indexes = {key: each for key, each in self._indexes.items() if each.note_nodes(rows)}
        self._too_many.clear()
        self._feasible = (None, self.scores, {})

    # Reading --------------------------------------------------------------------------------------

    def rejections(self) -> Mapping[int, int]:
        """How many nodes were rejected with which verdict; later changes are made to a copy."""
        self._are_rejections_shared = True
        if self._rejections is None:
            self._rejections = histogram(self.verdicts[self._view.nodes.order] & CODE)
            self._rejected = sum(self._rejections.values())
        return self._rejections

    def _count(self) -> int:
        """On how many nodes the pod fits."""
        if self._rejections is None:
            self.rejections()
        return len(self._view.nodes.order) - self._rejected

    def feasible(self, order: np.ndarray) -> np.ndarray:
        """The rows that fit, in order; the same array while none changes."""
        if self._feasible[0] is not order:
            self._feasible = (order, order[self.scores.take(order) != UNFIT], {})
        return self._feasible[1]

    def facts_of(self, rows: np.ndarray) -> dict[Hashable, Any] | None:
        """Where facts of the nodes of these rows are kept; None unless `feasible` gave the rows."""
        return self._feasible[2] if rows is self._feasible[1] else None

    def codes(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Verdict codes, and the positions of the rules that gave them, in this order."""
        found = self.verdicts.take(order)
        return (found & CODE).astype(np.int32), (found >> SHIFT).astype(np.int16)

    def by_score(self, order: np.ndarray, grouping: Grouping) -> ScoreIndex | ScoreTable | None:
        """The feasible rows by group and by score, in this order.

        None if some row is named twice, or if the grouping tells so many rows apart that it does
        not pay. All sums are compared while many rows change between decisions.
        """
        found = self._indexes.get(grouping)
        if found is not None and found.order is order:
            return found
        if grouping in self._too_many or len(order) != len(self._view.nodes.order):
            return None
        keys, tallies = grouping
        most = max(1, len(order) // self._tuning.min_reduction)
        if self._small_changes < self._rounds_to_index:
            layout = self._layouts.by(order, keys, most)
            if layout is None:
                return None
            return ScoreTable(layout, tallies, self.scores, self._count())
        self._indexed_at = self._small_changes
        if len(self._indexes) + len(self._too_many) >= MOST_GROUPINGS:
            self._indexes, self._too_many = {}, set()
        if self._layouts.may_group(keys, most):
            made = ScoreIndex(ManyRows(self._view, order), grouping, self.scores)
            if len(made) <= most and len(made.position_of) == len(order):
                self._indexes[grouping] = made
                return made
        self._indexes.pop(grouping, None)
        self._too_many.add(grouping)
        return None


class ScoreTable:
    """The feasible rows by group and by total, for one decision; read as a `ScoreIndex` is.

    Made while too many rows change for an index to pay.
    """

    __slots__ = ("_counts", "_groups", "_layout", "_spans", "_tallies", "_totals", "count")

    def __init__(
        self, layout: GroupLayout, tallies: Sequence[Tally], totals: np.ndarray, count: int
    ) -> None:
        """Totals are by row; *count* is on how many rows the pod fits."""
        self.count = count
        self._layout, self._tallies = layout, tallies
        self._totals = totals.take(layout.order)
        #: One more than the highest number of each tally.
        self._spans: list[int] = []
        groups, size = layout.of_position, len(layout.first)
        for tally in tallies:
            numbers = tally.rows.take(layout.order)
            span = int(_highest(numbers)) + 1
            groups, size = groups * span + numbers, size * span
            self._spans.append(span)
        #: The group at each position, and how many rows of each group fit.
        self._groups = groups
        self._counts = np.array([count])
        if size > 1:
            rows = np.bincount(groups, minlength=size) if tallies else layout.sizes
            unfit = groups.take((self._totals == UNFIT).nonzero()[0])
            self._counts = rows - np.bincount(unfit, minlength=size)

    def feasible_groups(self) -> RowGroups:
        """The groups that have feasible rows."""
        return self._groups_of(self._counts.nonzero()[0])

    def narrowed(self, fits: tuple[bool, ...]) -> RowGroups:
        """Those of the groups with feasible rows that are flagged."""
        return self._groups_of(self._counts.nonzero()[0][list(fits)])

    def _groups_of(self, numbers: np.ndarray) -> RowGroups:
        return self._layout.split_groups(numbers.tolist(), self._tallies, self._spans)

    def counts(self, groups: RowGroups) -> list[int]:
        """How many rows of each group fit."""
        found: list[int] = self._counts[groups.numbers].tolist()
        return found

    def best(self, groups: RowGroups, scores: Sequence[int]) -> np.ndarray:
        """The best positions of these groups, by total plus score of the group."""
        totals = self._totals
        if len(self._counts) > 1:
            by_group = np.full(len(self._counts), UNFIT, np.int64)
            by_group[groups.numbers] = scores
            totals = totals + by_group.take(self._groups)
        found: np.ndarray = (totals == _highest(totals)).nonzero()[0]
        return found
