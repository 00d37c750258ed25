"""A cache of the volumes attached to each node, kept as columns of counts per limit.

The rule that owns a cache works out the volumes of one row. This is repeated when a pod with
volumes comes to the row or leaves it, or when an object changes that was looked up for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.causes import Cause, VolumeLimit
from podium.engine.rows.rows import OneRow

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from podium.engine.state.catalog import Attachments
    from podium.engine.state.shelf import Shelf
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.storage import VolumeAttachment

#: The key of an object that was looked up: id of its shelf, namespace and name.
Looked = tuple[int, str, str]
NO_LIMIT = 1 << 62


@dataclass(slots=True)
class Held:
    """The volumes attached to one row."""

    #: Volumes of its pods.
    volumes: Iterable[Hashable] = ()
    #: How many volumes count against which limit, those without a pod included.
    counts: Counter[str] = field(default_factory=Counter)
    limits: dict[str, int] = field(default_factory=dict)
    #: The error that replaces an answer for the row.
    error: str = ""


def exceeded_limits(
    reason: Reason, new: Counter[str], attached: Counter[str], limits: Mapping[str, int]
) -> Iterator[Cause]:
    """The causes of limits that the volumes on a node and those of a pod exceed together."""
    for name, number in sorted(new.items()):
        if name in limits and attached[name] + number > limits[name]:
            yield VolumeLimit(reason.text, name, limits[name], attached[name], number)


class Lookups:
    """Looks up objects and records their keys; a change of one of them outdates the row."""

    def __init__(self) -> None:
        self.noted: set[Looked] = set()

    def get(self, shelf: Shelf[Any], name: str, namespace: str = "default") -> Any:
        """The object with this name; None if there is none."""
        self.noted.add((id(shelf), namespace, name))
        return shelf.get(name, namespace)

    def attached(self, shelf: Attachments, node: str) -> Iterable[VolumeAttachment]:
        """The VolumeAttachments of a node."""
        self.noted.add((id(shelf), shelf.BY_NODE, node))
        return shelf.to_node(node)


class VolumeLedger:
    """The volumes attached to every row, for one limit or one family of limits."""

    def __init__(
        self, view: View, read: Callable[[OneRow, Lookups], Held], *, all_rows: bool
    ) -> None:
        self._view = view
        self._read = read
        #: Whether rows without volumes have limits that matter.
        self._all_rows = all_rows
        self._rows: dict[int, Held] = {}
        self._noted: dict[int, set[Looked]] = {}
        self._watching: dict[Looked, set[int]] = defaultdict(set)
        self._counts: dict[str, np.ndarray] = {}
        self._limits: dict[str, np.ndarray] = {}
        #: Volume -> rows whose pods hold it.
        self._holders: dict[Hashable, set[int]] = defaultdict(set)
        self.errors: dict[int, str] = {}
        catalog = view.catalog
        self._shelves: tuple[Shelf[Any], ...] = (
            catalog.claims,
            catalog.volumes,
            catalog.storage_classes,
            catalog.csi_nodes,
            catalog.attachments,
        )
        self._seen = -1
        self._versions: list[int] = []

    def refresh(self) -> None:
        """Compute the rows again that changed since the last time."""
        for row in self._changed():
            self._forget(row)
            if self._view.nodes.names[row]:
                self._take(row)

    def _changed(self) -> Iterable[int]:
        view = self._view
        news, versions = view.journal.volume_rows.since(self._seen), self._versions
        self._seen = view.journal.volume_rows.end
        self._versions = [shelf.version for shelf in self._shelves]
        if versions == self._versions and news == []:
            return ()
        rows = set(news) if news is not None else None
        for shelf, version in zip(self._shelves, versions, strict=False):
            changes = shelf.changes_since(version)
            if changes is None or rows is None:
                rows = None
                break
            for namespace, name in changes:
                rows |= self._watching.get((id(shelf), namespace, name), set())
        if rows is None:
            everywhere = view.nodes.row_of.values() if self._all_rows else view.pods.volume_rows
            rows = {*everywhere, *self._rows}
        return rows

    def _forget(self, row: int) -> None:
        held = self._rows.pop(row, None)
        if held is None:
            return
        for volume in held.volumes:
            self._holders[volume].discard(row)
            if not self._holders[volume]:
                del self._holders[volume]
        for limit in held.counts:
            self._counts[limit][row] = 0
        for limit in held.limits:
            self._limits[limit][row] = NO_LIMIT
        self.errors.pop(row, None)
        for looked in self._noted.pop(row):
            self._watching[looked].discard(row)
            if not self._watching[looked]:
                del self._watching[looked]

    def _take(self, row: int) -> None:
        lookups = Lookups()
        held = self._rows[row] = self._read(OneRow(self._view, row), lookups)
        for volume in held.volumes:
            self._holders[volume].add(row)
        for limit, count in held.counts.items():
            self._column(self._counts, limit, 0)[row] = count
        for limit, number in held.limits.items():
            self._column(self._limits, limit, NO_LIMIT)[row] = number
        if held.error:
            self.errors[row] = held.error
        self._noted[row] = lookups.noted
        for looked in lookups.noted:
            self._watching[looked].add(row)

    def _column(self, columns: dict[str, np.ndarray], limit: str, other: int) -> np.ndarray:
        column = columns.get(limit)
        if column is None or len(column) < self._view.nodes.capacity:
            longer = np.full(self._view.nodes.capacity, other, np.int64)
            if column is not None:
                longer[: len(column)] = column
            column = columns[limit] = longer
        return column

    def counts(self, limit: str) -> np.ndarray:
        """How many volumes count against a limit, per row."""
        return self._column(self._counts, limit, 0)

    def limits(self, limit: str) -> np.ndarray:
        """The limit of each row."""
        return self._column(self._limits, limit, NO_LIMIT)

    def least_room(self, limit: str) -> int:
        """How many more volumes every row can hold."""
        room = self.limits(limit) - self.counts(limit)
        return int(room.min(initial=NO_LIMIT))

    def holding(self, volumes: Iterable[Hashable]) -> np.ndarray:
        """How many of these volumes the pods of each row use already."""
        found = np.zeros(self._view.nodes.capacity, np.int64)
        for volume in volumes:
            found[list(self._holders.get(volume, ()))] += 1
        return found

    def failing(self) -> np.ndarray:
        """The rows with an error."""
        found = np.zeros(self._view.nodes.capacity, np.bool_)
        found[list(self.errors)] = True
        return found


def ledger(
    view: View,
    key: Hashable,
    read: Callable[[OneRow, Lookups], Held],
    *,
    all_rows: bool = False,
) -> VolumeLedger:
    """The cache of a rule, made on first use and brought up to date."""
    found = view.ledgers.get(key)
    if found is None:
        found = view.ledgers[key] = VolumeLedger(view, read, all_rows=all_rows)
    found.refresh()
    return found
