"""Feasible rows by total score, so that the best are found without a scan."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.rows.row_groups import RowGroups, grouped
from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from podium.engine.rows.row_groups import Grouping


#: In place of a total: the pod does not fit on the row.
UNFIT = -(1 << 62)
#: So many sets of groups are kept with the facts of their rows.
MOST_NARROWED = 32
NO_POSITIONS = np.zeros(0, np.int64)


class _Buckets:
    """Positions by total, each list in node order, and the highest total first."""

    __slots__ = ("_heap", "_lists", "count")

    def __init__(self, positions: np.ndarray, totals: np.ndarray) -> None:
        """The totals are those of the positions, which are in node order."""
        by_total = np.argsort(totals, kind="stable")
        positions, totals = positions[by_total], totals[by_total]
        distinct, starts = np.unique(totals, return_index=True)
        parts = np.split(positions, starts[1:]) if len(distinct) else []
        self._lists: dict[int, list[int]] = dict(
            zip(distinct.tolist(), map(np.ndarray.tolist, parts), strict=True)
        )
        self._heap = (-distinct[::-1]).tolist()
        heapq.heapify(self._heap)
        #: How many positions there are.
        self.count = len(positions)

    def add(self, position: int, total: int) -> None:
        self.count += 1
        known = self._lists.get(total)
        if known is None:
            self._lists[total] = [position]
            heapq.heappush(self._heap, -total)
        else:
            insort(known, position)

    def remove(self, position: int, total: int) -> None:
        known = self._lists[total]
        del known[bisect_left(known, position)]
        self.count -= 1

    def best(self) -> tuple[int, list[int]]:
        """The highest total and its positions; 0 and an empty list when there are none."""
        while self._heap:
            total = -self._heap[0]
            known = self._lists[total]
            if known:
                return total, known
            heapq.heappop(self._heap)
            del self._lists[total]
        return 0, []


class ScoreIndex:
    """Feasible positions by group of rows, and by total score within each group.

    Where the scores that look at all feasible rows are the same for all rows of a group, such as
    the nodes of a zone, the best rows of each group are the only ones in question. Where no score
    looks beyond its row, all rows are one group.
    """

    __slots__ = (
        "_at",
        "_first",
        "_group_of",
        "_groups",
        "_keys",
        "_labelled",
        "_labels_of",
        "_narrowed",
        "_numbers",
        "_tallied",
        "_tallies",
        "_totals",
        "_view",
        "count",
        "order",
        "position_of",
    )

    def __init__(self, at: ManyRows, grouping: Grouping, totals: np.ndarray) -> None:
        """The rows are all rows in node order; totals are by row, `UNFIT` where it does not fit."""
        order = self.order = at.index
        self.position_of: dict[int, int] = dict(zip(order.tolist(), range(len(order)), strict=True))
        #: The total at each position.
        self._totals: list[int] = totals[order].tolist()
        self._view = at.view
        self._keys, self._tallies = grouping
        first, of_position = grouped(at, grouping)
        #: One row of each group, what the tallies count on it, and the number of its labels.
        self._first: list[int] = order[first].tolist()
        self._tallied = [self._counted(row) for row in self._first]
        self._labelled: dict[tuple[int, ...], int] = {}
        self._labels_of = [
            self._labelled.setdefault(self._ids(row), len(self._labelled)) for row in self._first
        ]
        #: The number of the group with these labels and counts.
        keys = zip(self._labels_of, self._tallied, strict=True)
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._group_of: list[int] = of_position.tolist()
        positions = np.flatnonzero(totals[order] != UNFIT)
        #: How many rows fit.
        self.count = len(positions)
        groups, found = of_position[positions], totals[order[positions]]
        self._groups = [
            _Buckets(positions[groups == number], found[groups == number])
            for number in range(len(first))
        ]
        #: The groups with feasible rows, and some of them by which ones these are.
        self._at: RowGroups | None = None
        self._narrowed: dict[tuple[bool, ...], RowGroups] = {}

    def _ids(self, row: int) -> tuple[int, ...]:
        nodes = self._view.nodes
        return tuple([nodes.label_column(key).ids.item(row) for key in self._keys])

    def _counted(self, row: int) -> tuple[int, ...]:
        return tuple([tally.on(row) for tally in self._tallies])

    def __len__(self) -> int:
        return len(self._groups)

    def put(self, row: int, total: int) -> None:
        """The pods of a row changed, and so may its total; `UNFIT` when it does not fit."""
        position = self.position_of.get(row)
        if position is None:
            return
        before, old = self._totals[position], self._group_of[position]
        number = old
        if self._tallies:
            number = self._group_of[position] = self._number(self._labels_of[old], row)
        if before == total and number == old:
            return
        self._totals[position] = total
        if before != UNFIT:
            group = self._groups[old]
            group.remove(position, before)
            self.count -= 1
            if not group.count:
                self._at = None
        if total != UNFIT:
            group = self._groups[number]
            group.add(position, total)
            self.count += 1
            if group.count == 1:
                self._at = None

    def _number(self, labels: int, row: int) -> int:
        """The group of a row with these labels, as its pods are now."""
        counted = self._counted(row)
        found = self._numbers.get((labels, counted))
        if found is None:
            found = self._numbers[labels, counted] = len(self._groups)
            self._first.append(row)
            self._labels_of.append(labels)
            self._tallied.append(counted)
            self._groups.append(_Buckets(NO_POSITIONS, NO_POSITIONS))
        return found

    def note_nodes(self, rows: AbstractSet[int]) -> bool:
        """Drop facts of nodes, which changed; True if these rows still have the same labels."""
        self._at = None
        for row in rows:
            position = self.position_of.get(row)
            if position is None:
                return False
            labels = self._labelled.get(self._ids(row))
            if labels != self._labels_of[self._group_of[position]]:
                return False
        return True

    def feasible_groups(self) -> RowGroups:
        """The groups that have feasible rows."""
        if self._at is None:
            self._narrowed = {}
            self._at = self._groups_of([n for n, each in enumerate(self._groups) if each.count])
        return self._at

    def narrowed(self, fits: tuple[bool, ...]) -> RowGroups:
        """Those of the groups with feasible rows that are flagged."""
        found = self._narrowed.get(fits)
        if found is None:
            if len(self._narrowed) >= MOST_NARROWED:
                self._narrowed.clear()
            numbers = list(compress(self.feasible_groups().numbers, fits))
            found = self._narrowed[fits] = self._groups_of(numbers)
        return found

    def _groups_of(self, numbers: list[int]) -> RowGroups:
        rows = np.array([self._first[n] for n in numbers], np.int64)
        tallied = {
            tally: [self._tallied[n][i] for n in numbers] for i, tally in enumerate(self._tallies)
        }
        return RowGroups(ManyRows(self._view, rows, {}), numbers, tallied)

    def counts(self, groups: RowGroups) -> list[int]:
        """How many rows of each group fit."""
        return [self._groups[number].count for number in groups.numbers]

    def best(self, groups: RowGroups, scores: Sequence[int]) -> Sequence[int]:
        """The best positions of these groups in node order, by total plus score of the group."""
        numbers = groups.numbers
        if len(numbers) == 1:
            return self._groups[numbers[0]].best()[1]
        highest: int | None = None
        lists: list[list[int]] = []
        for number, score in zip(numbers, scores, strict=True):
            total, positions = self._groups[number].best()
            total += score
            if highest is None or total > highest:
                highest, lists = total, [positions]
            elif total == highest:
                lists.append(positions)
        return lists[0] if len(lists) == 1 else _Merged(lists, len(self.order))


class _Merged(Sequence[int]):
    """Several ascending lists of positions as one; only the positions asked for are found."""

    __slots__ = ("_end", "_lists")

    def __init__(self, lists: list[list[int]], end: int) -> None:
        """All positions are below *end*."""
        self._lists = lists
        self._end = end

    def __len__(self) -> int:
        return sum(map(len, self._lists))

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # no slices are taken
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index == 0:
            return min([each[0] for each in self._lists if each])
        # The lowest position up to which there are more than `index` of them.
        low, high = 0, self._end - 1
        while low < high:
            middle = (low + high) // 2
            if sum(bisect_right(each, middle) for each in self._lists) > index:
                high = middle
            else:
                low = middle + 1
        return low
