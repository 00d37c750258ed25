"""The values of one node label as numbers, one per row."""

from __future__ import annotations

from itertools import count

import numpy as np

#: The number of "the node lacks this label".
ABSENT = 0


class LabelColumn:
    """Which value each row has for one label key; id 0 means that the row lacks the key."""

    __slots__ = ("_holders", "_shared", "held", "ids", "index", "values")

    def __init__(self, capacity: int) -> None:
        self.ids = np.zeros(capacity, np.int32)
        self.values: list[str | None] = [None]
        self.index: dict[str | None, int] = {None: ABSENT}
        self._holders = [0]
        self._shared = 0
        #: How many rows have a value.
        self.held = 0

    def intern(self, value: str | None) -> int:
        """The id of a value, made on first use."""
        found = self.index.get(value)
        if found is None:
            found = self.index[value] = len(self.values)
            self.values.append(value)
            self._holders.append(0)
        return found

    def fill(self, values: list[str | None]) -> None:
        """Set the values of the first rows of a column that has none yet."""
        self.index = dict(zip(dict.fromkeys((None, *values)), count(), strict=False))
        self.values = list(self.index)
        self.ids[: len(values)] = np.fromiter(map(self.index.__getitem__, values), np.int32)
        holders = np.bincount(self.ids, minlength=len(self.values))
        holders[ABSENT] = 0
        self._holders = holders.tolist()
        self.held = int(holders.sum())
        self._shared = int((holders > 1).sum())

    def put(self, row: int, value: str | None) -> None:
        """Set the value of a row."""
        before, after = self.ids.item(row), self.intern(value)
        self.ids[row] = after
        self._hold(before, -1)
        self._hold(after, 1)

    def _hold(self, value: int, number: int) -> None:
        if value != ABSENT:
            self._shared -= self._holders[value] > 1
            self._holders[value] += number
            self.held += number
            self._shared += self._holders[value] > 1

    @property
    def one_row_each(self) -> bool:
        """Whether no two rows share a value, as with host names."""
        return not self._shared
