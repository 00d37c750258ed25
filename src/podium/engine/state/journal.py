"""What changed in a view, so that readers look again at the rows that changed and at no others.

A reader remembers how far it has read (`RowLog.end`) and asks for what came `since`. A log is
bounded: beyond its limit the older half of its entries is dropped, and a reader that needs them is
told to start over.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The number of entries that a log keeps at most.
DEFAULT_LIMIT = 1 << 16


class RowLog:
    """Entries in the order in which they were added, each with a number of its own."""

    __slots__ = ("_limit", "entries", "start")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: An array, which NumPy reads without a look at each entry.
        self.entries: array[int] = array("q")
        #: The number of the first entry that is kept: how many were dropped.
        self.start = 0

    @property
    def end(self) -> int:
        """The number that the next entry will have: how many were ever added."""
        return self.start + len(self.entries)

    def add(self, entry: int) -> None:
        """Append an entry; drop the older half beyond the limit."""
        self.entries.append(entry)
        if len(self.entries) > self._limit:
            half = self._limit // 2
            del self.entries[:half]
            self.start += half

    def extend(self, entries: Sequence[int]) -> None:
        """Append entries, with the same effect as to `add` one after the other."""
        self.entries.extend(entries)
        half = self._limit // 2
        while half and len(self.entries) > self._limit:
            del self.entries[:half]
            self.start += half

    def since(self, number: int) -> array[int] | None:
        """The entries from *number* on; None when some of them were dropped."""
        behind = number - self.start
        return self.entries[behind:] if behind >= 0 else None


class Journal:
    """The changes of a view. `cluster.cache.columns.Columns` writes it after every change."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """Each of the two logs keeps up to *limit* entries."""
        #: Changes when rows are taken, freed or moved: nothing that was kept per row holds then.
        self.epoch = 0
        #: How often a node was added, updated or removed.
        self.node_changes = 0
        #: Rows that changed: `row` when its pods did, `~row` when its node did.
        self.rows = RowLog(limit)
        #: Rows where pods with volumes, or a node, were added or removed.
        self.volume_rows = RowLog(limit)

    @property
    def changes(self) -> int:
        """How often a node, or the pods of a row, changed."""
        return self.rows.end

    def start_epoch(self) -> None:
        """Note that rows were taken, freed or numbered anew."""
        self.epoch += 1

    def note_node(self, row: int) -> None:
        """Note that the node of a row was added, updated or removed."""
        self.node_changes += 1
        self.rows.add(~row)

    def note_pods(self, row: int) -> None:
        """Note that a pod was added to a row, removed from it, or counts differently there."""
        self.rows.add(row)

    def note_all_pods(self, rows: Sequence[int]) -> None:
        """Note that a pod was added to each of these rows."""
        self.rows.extend(rows)

    def note_volumes(self, row: int) -> None:
        """Note that the volumes attached to a row may have changed."""
        self.volume_rows.add(row)
