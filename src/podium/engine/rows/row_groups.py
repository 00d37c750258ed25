"""Groups of rows that score rules cannot tell apart: nodes of one zone, with equally many pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.rows.rows import ManyRows
    from podium.engine.state.tallies import Tally


class Grouping(NamedTuple):
    """What the rows of a group have in common."""

    #: They have equal values of these label keys.
    keys: tuple[str, ...] = ()
    #: These tallies count equally many pods on them.
    tallies: tuple[Tally, ...] = ()


class RowGroups(NamedTuple):
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
