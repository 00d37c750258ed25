"""What changed in a view, so that readers look again at the rows that changed and at no others.

A `Follower` remembers how far its owner has read and says what came since. A log is bounded: beyond
its limit the older half of its entries is dropped, and an owner that needs them starts over.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableSequence, Sequence

T = TypeVar("T")

#: The number of entries that a log keeps at most.
DEFAULT_LIMIT = 1 << 16


class ChangeLog(Generic[T]):
    """Entries in the order in which they were added, each with a number of its own.

    Beyond the limit the older half is dropped.
    """

    __slots__ = ("_limit", "entries", "start")

    def __init__(self, limit: int, entries: MutableSequence[T] | None = None) -> None:
        """The entries are a list, or what is given."""
        self._limit = limit
        self.entries: MutableSequence[T] = [] if entries is None else entries
        #: The number of the first entry that is kept: how many were dropped.
        self.start = 0

    @property
    def end(self) -> int:
        """The number that the next entry will have: how many were ever added."""
        return self.start + len(self.entries)

    def add(self, entry: T) -> None:
        """Append an entry; drop the older half beyond the limit."""
        self.entries.append(entry)
        if len(self.entries) > self._limit:
            half = self._limit // 2
            del self.entries[:half]
            self.start += half

    def extend(self, entries: Iterable[T]) -> None:
        """Append entries, with the same effect as to `add` one after the other."""
        self.entries.extend(entries)
        half = self._limit // 2
        while half and len(self.entries) > self._limit:
            del self.entries[:half]
            self.start += half

    def since(self, number: int) -> MutableSequence[T] | None:
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
        self.rows: ChangeLog[int] = ChangeLog(limit, array("q"))
        #: Rows where pods with volumes, or a node, were added or removed.
        self.volume_rows: ChangeLog[int] = ChangeLog(limit, array("q"))

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


class Follower(Generic[T]):
    """What changed since its owner looked the last time, or everything.

    Whatever keeps answers has one for each log that these follow from.
    """

    __slots__ = ("_epoch", "_journal", "_log", "_seen")

    def __init__(self, log: ChangeLog[T], journal: Journal | None = None) -> None:
        """Follow a log; if it is about rows, a new epoch of the *journal* changes everything."""
        self._log = log
        self._journal = journal
        self._epoch = self._seen = -1

    def follows(self, log: ChangeLog[T]) -> bool:
        """Whether this is the log that is followed."""
        return self._log is log

    def start_over(self) -> None:
        """Look at everything now: what was noted before does not count."""
        self._epoch = -1 if self._journal is None else self._journal.epoch
        self._seen = self._log.end

    def news(self) -> MutableSequence[T] | None:
        """The entries since the last call; None when everything may have changed.

        That is so at first, after a new epoch, and when entries were dropped since.
        """
        if self._journal is not None and self._epoch != self._journal.epoch:
            self.start_over()
            return None
        log = self._log
        entries, start = log.entries, log.start
        behind, self._seen = self._seen - start, start + len(entries)
        return entries[behind:] if behind >= 0 else None


def rows_in(entries: Iterable[int]) -> set[int]:
    """The rows of entries of the journal, whether their pods or their nodes changed."""
    return {entry if entry >= 0 else ~entry for entry in entries}
