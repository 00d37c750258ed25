"""Feasible rows by total score, so that the best are found without a scan."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from podium.engine.pipelines.scoring import grouped
from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from podium.engine.state.view import View


#: In place of a total: the pod does not fit on the row.
UNFIT = -(1 << 62)
#: So many sets of groups are kept with the facts of their rows.
MOST_NARROWED = 32


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


class _Totals:
    """All rows in node order, and the total score of each; None where the pod does not fit."""

    __slots__ = ("_totals", "order", "position_of")

    def __init__(self, order: np.ndarray, totals: np.ndarray) -> None:
        """The order lists rows; totals are by row, and `UNFIT` where the pod does not fit."""
        self.order = order
        self.position_of: dict[int, int] = dict(zip(order.tolist(), range(len(order)), strict=True))
        known = totals[order].astype(object)
        known[totals[order] == UNFIT] = None
        self._totals: list[int | None] = known.tolist()

    def _replace(self, row: int, total: int | None) -> tuple[int, int | None] | None:
        """Take over a total: the position and the total before; None if nothing changed."""
        position = self.position_of.get(row)
        if position is None:
            return None
        before = self._totals[position]
        if before == total:
            return None
        self._totals[position] = total
        return position, before


class ScoreIndex(_Totals):
    """Feasible positions by total score, each list in node order."""

    __slots__ = ("_buckets",)

    def __init__(self, order: np.ndarray, totals: np.ndarray) -> None:
        super().__init__(order, totals)
        positions = np.flatnonzero(totals[order] != UNFIT)
        self._buckets = _Buckets(positions, totals[order[positions]])

    @property
    def count(self) -> int:
        """How many rows fit."""
        return self._buckets.count

    def put(self, row: int, total: int | None) -> None:
        """The row's total changed; None when it does not fit any more."""
        changed = self._replace(row, total)
        if changed is None:
            return
        position, before = changed
        if before is not None:
            self._buckets.remove(position, before)
        if total is not None:
            self._buckets.add(position, total)

    def best(self) -> list[int]:
        """The positions that share the highest total; empty when nothing fits."""
        return self._buckets.best()[1]


class Groups(NamedTuple):
    """Some groups of rows: one row of each, and their numbers."""

    rows: ManyRows
    numbers: list[int]


class GroupIndex(_Totals):
    """Feasible positions by the values of some label keys, and by total score within each group.

    Where the scores that look at all feasible rows are the same for all rows of a group, such as a
    zone, the best rows of each group are the only ones in question.
    """

    __slots__ = (
        "_at",
        "_first",
        "_group_of",
        "_groups",
        "_keys",
        "_narrowed",
        "_numbers",
        "count",
    )

    def __init__(self, at: ManyRows, keys: tuple[str, ...], totals: np.ndarray) -> None:
        """The rows are all rows in node order; totals are by row."""
        order, view = at.index, at.view
        super().__init__(order, totals)
        self._keys = keys
        first, of_position, _ = grouped(at, keys)
        #: One row of each group.
        self._first: list[int] = order[first].tolist()
        self._group_of: list[int] = of_position.tolist()
        #: The number of the group with these ids of label values.
        self._numbers = {self._ids(row, view): n for n, row in enumerate(self._first)}
        positions = np.flatnonzero(totals[order] != UNFIT)
        #: How many rows fit.
        self.count = len(positions)
        groups, found = of_position[positions], totals[order[positions]]
        self._groups = [
            _Buckets(positions[groups == number], found[groups == number])
            for number in range(len(first))
        ]
        #: The groups with feasible rows, and some of them by which ones these are.
        self._at: Groups | None = None
        self._narrowed: dict[tuple[bool, ...], Groups] = {}

    def _ids(self, row: int, view: View) -> tuple[int, ...]:
        return tuple(view.nodes.label_column(key).ids.item(row) for key in self._keys)

    def __len__(self) -> int:
        return len(self._groups)

    def put(self, row: int, total: int | None) -> None:
        """The row's total changed; None when it does not fit any more."""
        changed = self._replace(row, total)
        if changed is None:
            return
        position, before = changed
        group = self._groups[self._group_of[position]]
        if before is not None:
            group.remove(position, before)
            self.count -= 1
        if total is not None:
            group.add(position, total)
            self.count += 1
        became_empty = total is None and not group.count
        if became_empty or (before is None and group.count == 1):
            self._at = None

    def holds(self, rows: AbstractSet[int], view: View) -> bool:
        """Whether these rows, whose nodes changed, are still in the same groups."""
        self._at = None  # facts of nodes are kept there
        for row in rows:
            position = self.position_of.get(row)
            if (
                position is None
                or self._numbers.get(self._ids(row, view)) != (self._group_of[position])
            ):
                return False
        return True

    def feasible_groups(self, view: View) -> Groups:
        """The groups that have feasible rows."""
        if self._at is None:
            self._narrowed = {}
            self._at = self._groups_of(
                view, [n for n, each in enumerate(self._groups) if each.count]
            )
        return self._at

    def narrowed(self, view: View, fits: tuple[bool, ...]) -> Groups:
        """Those of the groups with feasible rows that are flagged."""
        found = self._narrowed.get(fits)
        if found is None:
            if len(self._narrowed) >= MOST_NARROWED:
                self._narrowed.clear()
            numbers = list(compress(self.feasible_groups(view).numbers, fits))
            found = self._narrowed[fits] = self._groups_of(view, numbers)
        return found

    def _groups_of(self, view: View, numbers: list[int]) -> Groups:
        rows = np.array([self._first[n] for n in numbers], np.int64)
        return Groups(ManyRows(view, rows, {}), numbers)

    def counts(self, groups: Groups) -> list[int]:
        """How many rows of each group fit."""
        return [self._groups[number].count for number in groups.numbers]

    def best(self, groups: Groups, scores: Sequence[int]) -> Sequence[int]:
        """The best positions of these groups in node order, by total plus score of the group."""
        highest: int | None = None
        lists: list[list[int]] = []
        for number, score in zip(groups.numbers, scores, strict=True):
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

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        # The lowest position up to which there are more than `index` of them.
        low, high = 0, self._end - 1
        while low < high:
            middle = (low + high) // 2
            if sum(bisect_right(each, middle) for each in self._lists) > index:
                high = middle
            else:
                low = middle + 1
        return low
