"""Counts of pods per row and per topology domain, kept up to date as pods come and go.

Every rule that asks "how many pods like this are there" (spreading, affinity) reads a `Tally`
instead of walking pods. Pods are told apart by their `LabelSet` (namespace, labels, terminating
or not) and by the affinity terms they carry; a tally subscribes to the label sets it matches once
per label set, never once per pod.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np

from podium.engine.state.label_column import ABSENT
from podium.engine.state.selector_index import anchor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.engine.state.label_column import LabelColumn
    from podium.engine.state.selector_index import Anchor, ByAnchor
    from podium.engine.state.shelf import Shelf
    from podium.objects.kinds.workloads import Namespace
    from podium.objects.selectors.selectors import Selector


class SparseLimits(msgspec.Struct, frozen=True):
    """When a tally keeps only the rows on which it counts something."""

    #: With more rows of the view than this, a tally starts without a column.
    min_capacity: int = 1024
    #: Counting on more rows than this, it gets one.
    most_rows: int = 64


SPARSE: Final = SparseLimits()
#: A tally of few rows keeps sums per domain only for label keys with at most so many values.
MOST_DOMAINS_OF_FEW: Final = 64


class Presence:
    """How often a tally or a label set began to count pods at all, or ceased to."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes = 0


class Tally:
    """A number per row, and its sum per value of any label key that was asked for.

    In a large cluster most tallies count something on a few rows only, and there are thousands of
    them: those keep the few numbers, and make columns of them when asked.
    """

    __slots__ = (
        "_capacity",
        "_columns",
        "_domains",
        "_few",
        "_has_unkept_total",
        "_most_rows",
        "_presence",
        "_rows",
        "_totals",
        "carried",
        "carriers",
    )

    def __init__(
        self,
        capacity: int,
        columns: Callable[[str], LabelColumn],
        sparse: SparseLimits = SPARSE,
        presence: Presence | None = None,
    ) -> None:
        """*presence* notes when it begins to count pods, and when it ceases to."""
        self._most_rows = sparse.most_rows
        self._presence = presence or Presence()
        #: Whether some total was asked for that is not kept, so that any change may end it.
        self._has_unkept_total = False
        self.carriers = 0
        #: The term whose carriers it counts, if it does not count pods by their labels.
        self.carried: CarriedTerm | None = None
        self._capacity = capacity
        self._columns = columns
        #: Row -> number where it is not 0, as long as these are few; else there is a column.
        self._few: dict[int, int] | None = {} if capacity > sparse.min_capacity else None
        self._rows = np.zeros(capacity if self._few is None else 0, np.int64)
        self._domains: dict[str, np.ndarray] = {}
        self._totals: dict[str, int] = {}

    @property
    def rows(self) -> np.ndarray:
        """The number of each row; to be read only."""
        if self._few is None:
            return self._rows
        rows = np.zeros(self._capacity, np.int64)
        for row, number in self._few.items():
            rows[row] = number
        return rows

    def on(self, row: int) -> int:
        """The number of one row."""
        return self._rows.item(row) if self._few is None else self._few.get(row, 0)

    def add(self, row: int, number: int) -> None:
        """Count `number` more (or fewer) on a row."""
        self.carriers += number
        if self._has_unkept_total or not self.carriers or self.carriers == number:
            self._presence.changes += 1
        if self._few is not None:
            self._add_to_few(self._few, row, number)
        else:
            self._rows[row] += number
        outdated: list[str] = []
        for key, sums in self._domains.items():
            domain = self._columns(key).ids.item(row)
            if domain >= len(sums):
                # There are newer label values than sums.
                if self._few is not None:
                    outdated.append(key)
                    continue
                sums = self.by_domain(key)  # noqa: PLW2901 - with room for these
            if domain:
                sums[domain] += number
                total = self._totals[key] = self._totals[key] + number
                if not total or total == number:
                    self._presence.changes += 1
        for key in outdated:
            del self._domains[key], self._totals[key]  # made again when they are asked for

    def add_all(self, numbers: Mapping[int, int]) -> None:
        """Count on many rows at once, before sums per domain exist."""
        if self._few is not None and len(self._few) + len(numbers) > self._most_rows:
            self._keep_column()
        if self._few is not None:
            for row, number in numbers.items():
                self.add(row, number)
        elif numbers:
            rows = np.fromiter(numbers.keys(), np.int64, len(numbers))
            counts = np.fromiter(numbers.values(), np.int64, len(numbers))
            self._rows[rows] += counts
            self.carriers += int(counts.sum())

    def _add_to_few(self, few: dict[int, int], row: int, number: int) -> None:
        left = few.get(row, 0) + number
        if left:
            few[row] = left
            if len(few) > self._most_rows:
                self._keep_column()
        else:
            del few[row]

    def _keep_column(self) -> None:
        """Keep a number for every row from now on; sums per domain, once asked for, are kept."""
        self._rows, self._few = self.rows, None
        self._has_unkept_total = False

    def move(self, row: int, key: str, before: int, after: int) -> None:
        """A row's value of a label key changed: its pods now count for another domain."""
        sums = self._domains.get(key)
        number = self.on(row)
        if sums is None or not number:
            return
        if self._few is not None:
            del self._domains[key], self._totals[key]  # the columns have the new value already
            return
        sums = self.by_domain(key)
        sums[before] -= number if before else 0
        sums[after] += number if after else 0
        self._totals[key] += (number if after else 0) - (number if before else 0)

    def by_domain(self, key: str) -> np.ndarray:
        """The sum per value id of a label key, to be read only; of 0 (key absent) it is 0."""
        column = self._columns(key)
        size = len(column.values)
        sums = self._domains.get(key)
        if self._few is not None:
            if sums is not None and len(sums) >= size:
                return sums
            sums = self._sums_of_few(self._few, column.ids, size)
            if size <= MOST_DOMAINS_OF_FEW:
                self._domains[key], self._totals[key] = sums, int(sums.sum())
            return sums
        if sums is None:
            sums = np.bincount(column.ids, weights=self._rows, minlength=size).astype(np.int64)
            sums[ABSENT] = 0
            self._totals[key] = int(sums.sum())
        if len(sums) < size:
            sums = np.concatenate([sums, np.zeros(max(size, 2 * len(sums)) - len(sums), np.int64)])
        self._domains[key] = sums
        return sums

    def in_domain(self, key: str, value: int) -> int:
        """The sum of one value id of a label key."""
        if self._few is None:
            found: int = self.by_domain(key).item(value)
            return found
        ids = self._columns(key).ids
        if value == ABSENT:
            return 0
        return sum(number for row, number in self._few.items() if ids.item(row) == value)

    def _sums_of_few(self, few: dict[int, int], ids: np.ndarray, size: int) -> np.ndarray:
        sums = np.zeros(size, np.int64)
        for row, number in few.items():
            sums[ids.item(row)] += number
        sums[ABSENT] = 0
        return sums

    def total(self, key: str) -> int:
        """The sum over all rows that have the label key."""
        found = self._totals.get(key)
        if found is None:
            sums = self.by_domain(key)
            found = self._totals.get(key)
            if found is None:
                self._has_unkept_total = True
                found = int(sums.sum())
        return found

    def start_afresh(self) -> None:
        """Forget the sums per domain: the ids of label values are about to change."""
        self._domains, self._totals = {}, {}

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._capacity = capacity
        if self._few is None:
            more = np.zeros(capacity - len(self._rows), np.int64)
            self._rows = np.concatenate([self._rows, more])


class PodTerm:
    """Pods in some namespaces with some labels, near something: a compiled affinity term."""

    __slots__ = (
        "_anchor",
        "error",
        "key",
        "known_tally",
        "namespace_selector",
        "namespaces",
        "selector",
        "topology_key",
    )

    def __init__(
        self,
        namespaces: frozenset[str],
        selector: Selector,
        topology_key: str,
        error: str = "",
        namespace_selector: Selector | None = None,
    ) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.topology_key = topology_key
        self.error = error
        self.namespace_selector = namespace_selector
        self.key = (namespaces, selector, topology_key, error, namespace_selector)
        #: The tally of the pods it selects, with the tallies among which it was found.
        self.known_tally: tuple[dict[object, Tally], Tally] | None = None
        self._anchor: Anchor | Literal[False] = False

    @property
    def anchor(self) -> Anchor:
        """The labels that the selector requires, found once."""
        found = self._anchor
        if found is False:
            found = self._anchor = anchor(self.selector)
        return found

    @property
    def pods(self) -> object:
        """Which pods are meant, wherever they are: equal for terms that mean the same pods."""
        return (self.namespaces, self.selector, self.namespace_selector)

    def covers(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a pod with this namespace and these labels is meant."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


class CarriedTerm:
    """An affinity term that pods on nodes carry, with the tally of its carriers."""

    __slots__ = ("kind", "tally", "term", "weight")

    def __init__(self, kind: str, weight: int, term: PodTerm, tally: Tally) -> None:
        self.kind = kind
        self.weight = weight
        self.term = term
        self.tally = tally


class LabelSet:
    """Pods that selectors cannot tell apart, with the rows they are on."""

    __slots__ = (
        "_presence",
        "_seen",
        "_version",
        "labels",
        "matched",
        "namespace",
        "rows",
        "tallies",
        "terminating",
    )

    def __init__(
        self,
        namespace: str,
        labels: Mapping[str, str],
        *,
        terminating: bool,
        presence: Presence | None = None,
    ) -> None:
        """*presence* notes when the first of these pods comes, and when the last one leaves."""
        self._presence = presence or Presence()
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.rows: dict[int, int] = {}
        self.tallies: list[Tally] = []
        self.matched: list[CarriedTerm] = []
        self._seen = 0
        self._version = 0

    def add(self, row: int, number: int) -> None:
        """A pod with these labels came to a row or left it."""
        rows = self.rows
        left = rows.get(row, 0) + number
        if left:
            rows[row] = left
            if len(rows) == 1 and left == number:
                self._presence.changes += 1
        else:
            del rows[row]
            if not rows:
                self._presence.changes += 1
        for tally in self.tallies:
            tally.add(row, number)

    def add_each(self, rows: Sequence[int]) -> None:
        """A pod with these labels came to each of these rows; some may be listed repeatedly."""
        counts = self.rows
        if rows and not counts:
            self._presence.changes += 1
        for row in rows:
            counts[row] = counts.get(row, 0) + 1
        for tally in self.tallies:
            for row in rows:
                tally.add(row, 1)

    def start_afresh(self) -> None:
        """Forget which tallies and terms mean these pods: both are about to change."""
        self.tallies, self.matched, self._seen = [], [], 0

    def terms_selecting(
        self, carried: ByAnchor[CarriedTerm], namespaces: Shelf[Namespace]
    ) -> list[CarriedTerm]:
        """Those of the *carried* terms that select pods with these labels.

        Each term is matched once, and all of them again after a namespace changed.
        """
        if self._version != namespaces.version:
            self._version, self._seen, self.matched = namespaces.version, 0, []
        if self._seen < len(carried):
            own = namespaces.get(self.namespace)
            labels = own.labels if own is not None else {}
            for term in carried.likely(self.labels, self._seen):
                if not term.term.error and term.term.covers(self.namespace, self.labels, labels):
                    self.matched.append(term)
            self._seen = len(carried)
        return self.matched
