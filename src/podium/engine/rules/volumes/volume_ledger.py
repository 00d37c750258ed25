"""A cache of the volumes attached to each node, kept as columns of counts per limit.

The rule that owns a cache works out the volumes of one row. This is repeated when a pod with
volumes leaves the row, or when an object changes that was looked up for it; of a pod that comes to
the row, only its own volumes are worked out if the rule says how. That waits until the counts are
asked for: to say that every row has room, the number of volumes that new pods name is enough.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.causes import Cause, VolumeLimit
from podium.engine.rows.rows import OneRow
from podium.engine.rules.volumes.shared import VolumeError
from podium.engine.state.journal import Follower
from podium.engine.state.view import KeptInView

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from podium.engine.state.catalog import Attachments, Catalog
    from podium.engine.state.pod_class import PodClass, Resident
    from podium.engine.state.shelf import Shelf
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.storage import VolumeAttachment

#: The key of an object that was looked up: its shelf, namespace and name.
Looked = tuple["Shelf[Any]", str, str]
NO_LIMIT = 1 << 62
#: The limit that a volume counts against, and its name.
LimitedVolume = tuple[str, str]


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


@dataclass(slots=True)
class HeldByPods(Held):
    """The same, where the volumes of one more pod can be added."""

    volumes: set[LimitedVolume] = field(default_factory=set)
    #: Volumes attached to the node, whether a pod uses them or not.
    attached: frozenset[LimitedVolume] = frozenset()
    #: The pods with volumes whose volumes these are.
    pods: set[Resident] = field(default_factory=set)


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
        self.noted.add((shelf, namespace, name))
        return shelf.get(name, namespace)

    def attached(self, shelf: Attachments, node: str) -> Iterable[VolumeAttachment]:
        """The VolumeAttachments of a node."""
        self.noted.add((shelf, shelf.BY_NODE, node))
        return shelf.to_node(node)


@dataclass(frozen=True, slots=True)
class VolumesOfPods:
    """How the volumes of one more pod on a row are found, for a row that is `HeldByPods`."""

    #: The volumes of a placed pod that count against a limit, at most one for each that it names.
    of_pod: Callable[[Resident, Lookups, Catalog], Iterable[LimitedVolume]]
    #: Whether they are found without an error for all pods of a class, whatever objects exist.
    never_fails: Callable[[PodClass], bool]


class VolumeLedger:
    """The volumes attached to every row, for one limit or one family of limits."""

    def __init__(
        self,
        view: View,
        read: Callable[[OneRow, Lookups], Held],
        *,
        all_rows: bool,
        by_pod: VolumesOfPods | None,
    ) -> None:
        self._view = view
        self._read = read
        self._by_pod = by_pod
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
        self._follower = Follower(view.journal.volume_rows)
        self._epoch = self._changes = -1
        self._versions: list[int] = []
        #: The least room of all rows by limit, where it is known; as they were last computed.
        self._least: dict[str, int] = {}
        #: Rows where pods came or left since, and by limit the least room that one of them has if
        #: none of the new pods shares a volume.
        self._postponed: set[int] = set()
        self._least_postponed: dict[str, int] = {}

    def refresh(self) -> None:
        """Compute the rows again that changed since the last time, or put that off."""
        journal, catalog = self._view.journal, self._view.catalog
        news = self._follower.news()
        changes = catalog.claim_changes() + catalog.csi_nodes.version + catalog.attachments.version
        is_same = changes == self._changes and journal.epoch == self._epoch
        if is_same and news is not None:
            for row in news if len(news) == 1 else set(news):
                if not self._postpone(row):
                    self._update(row)
            return
        self._changes = changes
        versions = [shelf.version for shelf in self._shelves]
        outdated = self._outdated(versions)
        rows = set(news) if news is not None else None
        if rows is None or outdated is None:
            view = self._view
            everywhere = view.nodes.row_of.values() if self._all_rows else view.pods.volume_rows
            rows = outdated = {*everywhere, *self._rows}
        # After a change of the epoch a row may be that of another node.
        self._epoch, self._versions = journal.epoch, versions
        for row in rows | outdated:
            self._read_again(row)

    def _postpone(self, row: int) -> bool:
        """Put off to compute a row where pods came or left; False if that must not wait.

        That is so on a row without limits, on one with an error, and where the volumes of a new pod
        may be one.
        """
        held, by_pod = self._rows.get(row), self._by_pod
        if by_pod is None or not isinstance(held, HeldByPods):
            return False
        pods, more = held.pods, 0
        for pod in self._view.pods.residents[row]:
            if pod.cls.volumes and pod not in pods:
                if not by_pod.never_fails(pod.cls):
                    return False
                more += len(pod.cls.volumes)
        self._postponed.add(row)
        least = self._least_postponed
        for limit, number in held.limits.items():
            room = number - held.counts[limit] - more
            if room < least.get(limit, NO_LIMIT):
                least[limit] = room
        return True

    def _catch_up(self) -> None:
        """Compute the rows for which that was put off."""
        rows, self._postponed, self._least_postponed = self._postponed, set(), {}
        for row in rows:
            self._update(row)

    def _update(self, row: int) -> None:
        """Compute a row again where pods came or left."""
        if not self._add_pods(row):
            self._read_again(row)

    def _read_again(self, row: int) -> None:
        self._forget(row)
        if self._view.nodes.names[row]:
            self._take(row)

    def _outdated(self, versions: list[int]) -> set[int] | None:
        """The rows for which an object was looked up that changed since; None: any of them."""
        rows: set[int] = set()
        if versions == self._versions:
            return rows
        if not self._versions:
            return None
        for shelf, version in zip(self._shelves, self._versions, strict=True):
            changes = shelf.changes_since(version)
            if changes is None:
                return None
            for namespace, name in changes:
                rows |= self._watching.get((shelf, namespace, name), set())
        return rows

    def _add_pods(self, row: int) -> bool:
        """Add the volumes of pods that came to a row; False if all has to be computed again."""
        held, by_pod = self._rows.get(row), self._by_pod
        if by_pod is None or not isinstance(held, HeldByPods):
            return False
        pods, view = held.pods, self._view
        new = [p for p in view.pods.residents[row] if p.cls.volumes and p not in pods]
        if len(pods) + len(new) != view.pods.volume_rows.get(row, 0):
            return False  # one of them has left
        lookups = Lookups()
        try:
            volumes = {each for pod in new for each in by_pod.of_pod(pod, lookups, view.catalog)}
        except VolumeError:
            return False
        pods.update(new)
        for volume in volumes.difference(held.volumes):
            held.volumes.add(volume)
            self._holders[volume].add(row)
            if volume not in held.attached:
                limit = volume[0]
                held.counts[limit] += 1
                self._set_count(limit, row, held.counts[limit])
        self._watch(row, lookups.noted.difference(self._noted[row]))
        return True

    def _forget(self, row: int) -> None:
        self._postponed.discard(row)
        held = self._rows.pop(row, None)
        if held is None:
            return
        for volume in held.volumes:
            self._holders[volume].discard(row)
            if not self._holders[volume]:
                del self._holders[volume]
        for limit in held.counts:
            self._set_count(limit, row, 0)
        for limit in held.limits:
            self._set_limit(limit, row, NO_LIMIT)
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
            self._set_count(limit, row, count)
        for limit, number in held.limits.items():
            self._set_limit(limit, row, number)
        if held.error:
            self.errors[row] = held.error
        self._noted[row] = set()
        self._watch(row, lookups.noted)

    def _watch(self, row: int, looked_up: set[Looked]) -> None:
        self._noted[row] |= looked_up
        for looked in looked_up:
            self._watching[looked].add(row)

    def _set_count(self, limit: str, row: int, count: int) -> None:
        before = self._room(limit, row)
        self._column(self._counts, limit, 0)[row] = count
        self._note_room(limit, before, self._room(limit, row))

    def _set_limit(self, limit: str, row: int, number: int) -> None:
        before = self._room(limit, row)
        self._column(self._limits, limit, NO_LIMIT)[row] = number
        self._note_room(limit, before, self._room(limit, row))

    def _room(self, limit: str, row: int) -> int:
        limits = self._column(self._limits, limit, NO_LIMIT)
        found: int = limits.item(row) - self._column(self._counts, limit, 0).item(row)
        return found

    def _note_room(self, limit: str, before: int, now: int) -> None:
        """Keep the least room, as long as it is known, when that of a row changed."""
        least = self._least.get(limit)
        if least is None:
            return
        if now < least:
            self._least[limit] = now
        elif before == least < now:
            del self._least[limit]

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
        self._catch_up()
        return self._column(self._counts, limit, 0)

    def limits(self, limit: str) -> np.ndarray:
        """The limit of each row."""
        return self._column(self._limits, limit, NO_LIMIT)

    def has_room(self, limit: str, number: int) -> bool:
        """Whether every row can hold so many more volumes."""
        if self._postponed:
            if self._is_room_certain(limit, number):
                return True
            self._catch_up()
        return self._least_room(limit) >= number

    def has_room_by_any(self, number: int) -> bool:
        """Whether it is certain that every row can hold so many more volumes, by any limit."""
        return all(self._is_room_certain(limit, number) for limit in self._limits)

    def _is_room_certain(self, limit: str, number: int) -> bool:
        if self._least_postponed.get(limit, NO_LIMIT) < number:
            return False
        return self._least_room(limit) >= number

    def _least_room(self, limit: str) -> int:
        """How many more volumes every row can hold, as the rows were last computed."""
        least = self._least.get(limit)
        if least is None:
            limits = self._column(self._limits, limit, NO_LIMIT)
            room = limits - self._column(self._counts, limit, 0)
            least = self._least[limit] = int(room.min(initial=NO_LIMIT))
        return least

    def holding(self, volumes: Iterable[Hashable]) -> np.ndarray:
        """How many of these volumes the pods of each row use already."""
        self._catch_up()
        found = np.zeros(self._view.nodes.capacity, np.int64)
        for volume in volumes:
            found[list(self._holders.get(volume, ()))] += 1
        return found

    def failing(self) -> np.ndarray:
        """The rows with an error."""
        found = np.zeros(self._view.nodes.capacity, np.bool_)
        found[list(self.errors)] = True
        return found


_LEDGERS: KeptInView[VolumeLedger] = KeptInView()


def ledger(
    view: View,
    key: Hashable,
    read: Callable[[OneRow, Lookups], Held],
    *,
    all_rows: bool = False,
    by_pod: VolumesOfPods | None = None,
) -> VolumeLedger:
    """The cache of a rule, made on first use and brought up to date.

    *by_pod* is given where `read` returns `HeldByPods`.
    """
    found = _LEDGERS.of(
        view, key, lambda: VolumeLedger(view, read, all_rows=all_rows, by_pod=by_pod)
    )
    found.refresh()
    return found
