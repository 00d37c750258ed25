"""The best rows by columns of scores, while too many rows change for an index to pay.

What `ScoreIndex` and `GroupIndex` keep up to date row by row is found here by a few passes over
columns. A table holds for one decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.fast.score_index import UNFIT, Groups
from podium.engine.pipelines.scoring import grouped
from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.state.view import View

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

    __slots__ = ("_groups", "ends", "first", "positions", "rows", "starts")

    def __init__(self, at: ManyRows, keys: tuple[str, ...]) -> None:
        """The rows are all rows in node order."""
        first, of_position, _ = grouped(at, keys)
        #: One row of each group.
        self.first = at.index[first]
        #: The positions group by group, ascending within each, and their rows.
        self.positions = np.argsort(of_position, kind="stable")
        self.rows = at.index[self.positions]
        #: Where each group begins and ends among them.
        self.starts = np.searchsorted(of_position[self.positions], np.arange(len(first)))
        self.ends = [*self.starts[1:].tolist(), len(self.rows)]
        self._groups: dict[tuple[int, ...], Groups] = {}

    def groups(self, view: View, numbers: list[int]) -> Groups:
        """Some of the groups, with the facts of their rows that are kept while nodes stay."""
        key = tuple(numbers)
        found = self._groups.get(key)
        if found is None:
            if len(self._groups) >= MOST_LAYOUTS:
                self._groups.clear()
            found = self._groups[key] = Groups(ManyRows(view, self.first[numbers], {}), numbers)
        return found


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
        if max(len(self._view.nodes.label_column(key).values) for key in keys) <= most + 1:
            made = GroupLayout(ManyRows(self._view, order), keys)
            if len(made.first) > most:
                made = None
        self._known[keys] = made
        return made


class GroupTable:
    """The total of each row, or `UNFIT`, by groups of rows."""

    __slots__ = ("_best", "_layout", "_totals", "count")

    def __init__(self, layout: GroupLayout, totals: np.ndarray, count: int) -> None:
        """The totals are by row."""
        self._layout = layout
        self._totals = totals.take(layout.rows)
        #: The highest total of each group.
        self._best: list[int] = np.maximum.reduceat(self._totals, layout.starts).tolist()
        #: How many rows fit.
        self.count = count

    def feasible_groups(self, view: View) -> Groups:
        """The groups that have feasible rows."""
        return self._layout.groups(view, [n for n, best in enumerate(self._best) if best != UNFIT])

    def narrowed(self, view: View, fits: tuple[bool, ...]) -> Groups:
        """Those of the groups with feasible rows that are flagged."""
        numbers = self.feasible_groups(view).numbers
        return self._layout.groups(view, [n for n, fit in zip(numbers, fits, strict=True) if fit])

    def counts(self, groups: Groups) -> list[int]:
        """How many rows of each group fit."""
        fits = (self._totals != UNFIT).astype(np.int64)
        counts = np.add.reduceat(fits, self._layout.starts)
        found: list[int] = counts[groups.numbers].tolist()
        return found

    def best(self, groups: Groups, scores: Sequence[int]) -> np.ndarray:
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
