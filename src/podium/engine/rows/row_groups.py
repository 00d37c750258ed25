"""Groups of rows that score rules cannot tell apart: nodes of one zone, with equally many pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View

#: Layouts are kept for so many sets of label keys, and facts for so many sets of groups of each.
MOST_LAYOUTS = 32


class Grouping(NamedTuple):
    """What the rows of a group have in common."""

    #: They have equal values of these label keys.
    keys: tuple[str, ...] = ()
    #: These tallies count equally many pods on them.
    tallies: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some groups of rows, which share their values of the label keys with one row of each."""

    #: The tallies may count other numbers on these rows by now; `tallied` has those of the groups.
    rows: ManyRows
    #: The number of each group in the index that made it.
    numbers: list[int]
    #: What each tally counts on a row of each group.
    tallied: Mapping[Tally, Sequence[int]]


def grouped(at: ManyRows, grouping: Grouping) -> tuple[np.ndarray, np.ndarray]:
    """The position of the first row of each group, and the group of each row."""
    ids: np.ndarray = np.zeros(len(at), np.int64)
    size = 1
    for key in grouping.keys:
        values = len(at.view.nodes.label_column(key).values)
        ids, size = ids * values + at.label_ids(key), size * values
    for tally in grouping.tallies:
        numbers = at.on_row(tally)
        span = int(numbers.max(initial=0)) + 1
        ids, size = ids * span + numbers, size * span
    if size > len(at):
        _, first, of_row = np.unique(ids, return_index=True, return_inverse=True)
        return first, of_row
    # Few combinations of values: a table of them costs less than sorting the rows.
    place = np.full(size, -1)
    place[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    present = np.flatnonzero(place >= 0)
    number = np.zeros(size, np.int64)
    number[present] = np.arange(len(present))
    return place[present], number[ids]


class GroupLayout:
    """All rows in node order, and their groups by the values of some label keys."""

    __slots__ = ("_groups", "_view", "first", "of_position", "order", "sizes")

    def __init__(self, at: ManyRows, keys: tuple[str, ...]) -> None:
        """The rows are all rows in node order."""
        self._view = at.view
        first, of_position = grouped(at, Grouping(keys))
        #: The row and the group at each position.
        self.order, self.of_position = at.index, of_position
        #: One row of each group, and how many rows it has.
        self.first, self.sizes = at.index[first], np.bincount(of_position, minlength=len(first))
        self._groups: dict[tuple[int, ...], RowGroups] = {}

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
        #: By the keys and the most groups that are wanted.
        self._known: dict[tuple[tuple[str, ...], int], GroupLayout | None] = {}

    def by(self, order: np.ndarray, keys: tuple[str, ...], most: int) -> GroupLayout | None:
        """The layout by these keys; None if they make more groups than *most*.

        None as well if the order names some row twice.
        """
        journal = self._view.journal
        state = (journal.epoch, journal.node_changes)
        if self._order is not order or self._state != state:
            self._order, self._state, self._known = order, state, {}
        if (keys, most) in self._known:
            return self._known[keys, most]
        if len(self._known) >= MOST_LAYOUTS:
            self._known.clear()
        made: GroupLayout | None = None
        if self.may_group(keys, most) and self._view.nodes.names_once(order):
            made = GroupLayout(ManyRows(self._view, order), keys)
            if len(made.first) > most:
                made = None
        self._known[keys, most] = made
        return made

    def may_group(self, keys: tuple[str, ...], most: int) -> bool:
        """Whether each of the keys has few enough values for as many groups."""
        sizes = [len(self._view.nodes.label_column(key).values) for key in keys]
        return max(sizes, default=0) <= most + 1
