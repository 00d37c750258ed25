"""The best rows by columns of scores, while too many rows change for an index to pay.

What `ScoreIndex` and `GroupIndex` keep up to date row by row is found here by a few passes over
columns. A table holds for one decision. With the extra `compiled`, one pass in machine code finds
the best rows of all groups (`SearchedTable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, overload

import numpy as np

from podium.engine.fast.score_index import UNFIT
from podium.engine.rows.row_groups import Grouping, RowGroups, grouped
from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.fast.compiled_rows import Loops
    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View

_highest = np.maximum.reduce

#: Layouts are kept for so many sets of label keys, and facts for so many sets of groups of each.
MOST_LAYOUTS = 32


class ScoreTable:
    """The total of each row in node order, or `UNFIT`."""

    __slots__ = ("_totals", "count")

    def __init__(self, totals: np.ndarray, count: int) -> None:
        self._totals = totals
        #: How many rows fit.
        self.count = count

    def best(self) -> np.ndarray:
        """The positions that share the highest total; some row must fit."""
        totals = self._totals
        return np.flatnonzero(totals == totals[totals.argmax()])


class GroupLayout:
    """All rows in node order, sorted by the values of some label keys."""

    __slots__ = (
        "_groups",
        "_view",
        "all_groups",
        "compact",
        "ends",
        "first",
        "of_position",
        "order",
        "positions",
        "rows",
        "starts",
    )

    def __init__(self, at: ManyRows, keys: tuple[str, ...]) -> None:
        """The rows are all rows in node order."""
        self._view = at.view
        first, of_position = grouped(at, Grouping(keys))
        #: The row and the group at each position.
        self.order, self.of_position = at.index, of_position
        #: The same in half the memory and without a sign, which compiled code reads faster.
        self.compact = (at.index.astype(np.uint32), of_position.astype(np.uint32))
        #: One row of each group.
        self.first = at.index[first]
        #: The positions group by group, ascending within each, and their rows.
        self.positions = np.argsort(of_position, kind="stable")
        self.rows = at.index[self.positions]
        #: Where each group begins and ends among them.
        self.starts = np.searchsorted(of_position[self.positions], np.arange(len(first)))
        self.ends = [*self.starts[1:].tolist(), len(self.rows)]
        self._groups: dict[tuple[int, ...], RowGroups] = {}
        #: All groups.
        self.all_groups = self.groups(list(range(len(first))))

    def groups(self, numbers: list[int]) -> RowGroups:
        """Some of the groups, with the facts of their rows that are kept while nodes stay."""
        key = tuple(numbers)
        found = self._groups.get(key)
        if found is None:
            if len(self._groups) >= MOST_LAYOUTS:
                self._groups.clear()
            rows = ManyRows(self._view, self.first[numbers], {})
            found = self._groups[key] = RowGroups(rows, numbers, {})
        return found

    def split_groups(
        self, numbers: list[int], tallies: Sequence[Tally], spans: Sequence[int]
    ) -> RowGroups:
        """Groups of rows that tallies count equally many pods on as well.

        The number of such a group is that of the labels, times the span of each tally plus what
        that counts, one tally after the other.
        """
        if not tallies:
            return self.groups(numbers)
        tallied: dict[Tally, list[int]] = {}
        labels = numbers
        for tally, span in zip(reversed(tallies), reversed(spans), strict=True):
            tallied[tally] = [number % span for number in labels]
            labels = [number // span for number in labels]
        return RowGroups(self.groups(labels).rows, numbers, tallied)


class GroupLayouts:
    """The layouts of the rows of a view by label keys, kept while nodes and their order stay."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._order: np.ndarray | None = None
        self._state = (-1, -1)
        self._known: dict[tuple[str, ...], GroupLayout | None] = {}

    def by(self, order: np.ndarray, keys: tuple[str, ...], most: int) -> GroupLayout | None:
        """The layout by these keys; None if they make more groups than *most*."""
        journal = self._view.journal
        state = (journal.epoch, journal.node_changes)
        if self._order is not order or self._state != state:
            self._order, self._state, self._known = order, state, {}
        if keys in self._known:
            return self._known[keys]
        if len(self._known) >= MOST_LAYOUTS:
            self._known.clear()
        made: GroupLayout | None = None
        sizes = [len(self._view.nodes.label_column(key).values) for key in keys]
        if max(sizes, default=0) <= most + 1:
            made = GroupLayout(ManyRows(self._view, order), keys)
            if len(made.first) > most:
                made = None
        self._known[keys] = made
        return made


class GroupTable:
    """The total of each row, or `UNFIT`, by groups of rows with equal labels."""

    __slots__ = ("_best", "_layout", "_totals", "count")

    def __init__(self, layout: GroupLayout, totals: np.ndarray, count: int) -> None:
        """The totals are by row."""
        self._layout = layout
        self._totals = totals.take(layout.rows)
        #: The highest total of each group.
        self._best: list[int] = np.maximum.reduceat(self._totals, layout.starts).tolist()
        #: How many rows fit.
        self.count = count

    def feasible_groups(self) -> RowGroups:
        """The groups that have feasible rows."""
        return self._layout.groups([n for n, best in enumerate(self._best) if best != UNFIT])

    def narrowed(self, fits: tuple[bool, ...]) -> RowGroups:
        """Those of the groups with feasible rows that are flagged."""
        return self._layout.groups(list(compress(self.feasible_groups().numbers, fits)))

    def counts(self, groups: RowGroups) -> list[int]:
        """How many rows of each group fit."""
        fits = (self._totals != UNFIT).astype(np.int64)
        counts = np.add.reduceat(fits, self._layout.starts)
        found: list[int] = counts[groups.numbers].tolist()
        return found

    def best(self, groups: RowGroups, scores: Sequence[int]) -> np.ndarray:
        """The best positions of these groups in node order, by total plus score of the group."""
        totals = [self._best[n] + score for n, score in zip(groups.numbers, scores, strict=True)]
        highest = max(totals)
        winners = [n for n, total in zip(groups.numbers, totals, strict=True) if total == highest]
        found = [self._positions_of_best(number) for number in winners]
        return found[0] if len(found) == 1 else np.sort(np.concatenate(found))

    def _positions_of_best(self, number: int) -> np.ndarray:
        layout = self._layout
        part = slice(layout.starts[number], layout.ends[number])
        found: np.ndarray = layout.positions[part][self._totals[part] == self._best[number]]
        return found


class TalliedTable:
    """The total of each row, or `UNFIT`, by groups of rows with equal labels and counts of pods."""

    __slots__ = ("_counts", "_groups", "_layout", "_spans", "_tallies", "_totals", "count")

    def __init__(
        self, layout: GroupLayout, tallies: Sequence[Tally], totals: np.ndarray, count: int
    ) -> None:
        """The totals are by row."""
        self._layout, self._tallies = layout, tallies
        self._totals = totals.take(layout.order)
        #: How many rows fit.
        self.count = count
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
        fitting = groups if count == len(groups) else groups[self._totals != UNFIT]
        self._counts = np.bincount(fitting, minlength=size)

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
        """The best positions of these groups in node order, by total plus score of the group."""
        by_group = np.full(len(self._counts), UNFIT, np.int64)
        by_group[groups.numbers] = scores
        totals = self._totals + by_group.take(self._groups)
        found: np.ndarray = (totals == _highest(totals)).nonzero()[0]
        return found


class SearchedTable:
    """The highest total of each group, and the rows that have it, found by compiled code.

    The groups are those of `GroupTable`, or with tallies those of `TalliedTable`.
    """

    __slots__ = (
        "_feasible",
        "_found",
        "_groups",
        "_layout",
        "_scores",
        "_spans",
        "_tallies",
        "count",
    )

    def __init__(
        self,
        layout: GroupLayout,
        tallies: Sequence[Tally],
        scores: np.ndarray,
        count: int,
        loops: Loops,
    ) -> None:
        """The scores are by row, and `UNFIT` where the pod does not fit."""
        self._layout, self._tallies, self._scores = layout, tallies, scores
        #: How many rows fit.
        self.count = count
        #: One more than the highest number of each tally.
        self._spans: list[int] = []
        (order, groups), size = layout.compact, len(layout.first)
        for tally in tallies:
            split = np.empty(len(order), np.uint32)
            span = loops.split(tally.rows, order, groups, split)
            groups, size = split, size * span
            self._spans.append(span)
        #: The group at each position.
        self._groups = groups
        found = np.empty((size, 3), np.int64)
        #: How many groups have feasible rows.
        self._feasible = loops.best(scores, order, groups, found, UNFIT)
        #: Of each group the highest total, how many rows have it, and the position of the first.
        self._found: list[list[int]] = found.tolist()

    def feasible_groups(self) -> RowGroups:
        """The groups that have feasible rows."""
        if self._feasible == len(self._layout.first) and not self._tallies:
            return self._layout.all_groups
        numbers = [number for number, each in enumerate(self._found) if each[0] != UNFIT]
        return self._layout.split_groups(numbers, self._tallies, self._spans)

    def narrowed(self, fits: tuple[bool, ...]) -> RowGroups:
        """Those of the groups with feasible rows that are flagged."""
        numbers = list(compress(self.feasible_groups().numbers, fits))
        return self._layout.split_groups(numbers, self._tallies, self._spans)

    def counts(self, groups: RowGroups) -> list[int]:
        """How many rows of each group fit."""
        fitting = self._groups[self._scores.take(self._layout.order) != UNFIT]
        counts = np.bincount(fitting, minlength=len(self._found))
        found: list[int] = counts[groups.numbers].tolist()
        return found

    def best(self, groups: RowGroups, scores: Sequence[int]) -> Sequence[int]:
        """The best positions of these groups in node order, by total plus score of the group."""
        found = [self._found[number] for number in groups.numbers]
        totals = [each[0] + score for each, score in zip(found, scores, strict=True)]
        highest = max(totals)
        if totals.count(highest) == 1:
            _, count, first = found[totals.index(highest)]
        else:
            winners = [each for each, total in zip(found, totals, strict=True) if total == highest]
            count, first = sum(each[1] for each in winners), min(each[2] for each in winners)
        return BestPositions(count, first, partial(self._totals, groups, scores))

    def _totals(self, groups: RowGroups, scores: Sequence[int]) -> np.ndarray:
        """The total of each position, with the score of its group."""
        by_group = np.full(len(self._found), UNFIT, np.int64)
        by_group[groups.numbers] = scores
        totals: np.ndarray = self._scores.take(self._layout.order) + by_group.take(self._groups)
        return totals


class SearchedScores:
    """The rows with the highest total of all, found by compiled code."""

    __slots__ = ("_found", "_layout", "_scores", "count")

    def __init__(self, layout: GroupLayout, scores: np.ndarray, count: int, loops: Loops) -> None:
        """All rows are one group of the layout."""
        self._layout, self._scores = layout, scores
        #: How many rows fit.
        self.count = count
        self._found = np.empty((1, 3), np.int64)
        loops.best(scores, *layout.compact, self._found, UNFIT)

    def best(self) -> Sequence[int]:
        """The positions that share the highest total; some row must fit."""
        [[_, count, first]] = self._found.tolist()
        return BestPositions(count, first, self._totals)

    def _totals(self) -> np.ndarray:
        totals: np.ndarray = self._scores.take(self._layout.order)
        return totals


class BestPositions(Sequence[int]):
    """The positions with the highest total: how many, the first of them, and all if asked for."""

    __slots__ = ("_count", "_first", "_totals")

    def __init__(self, count: int, first: int, totals: Callable[[], np.ndarray]) -> None:
        self._count, self._first, self._totals = count, first, totals

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        if index == 0:
            return self._first
        totals = self._totals()
        found: list[int] = (totals == _highest(totals)).nonzero()[0].tolist()
        return found[index]
