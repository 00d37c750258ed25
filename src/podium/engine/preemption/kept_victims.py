"""The victims on every row, kept for a class of pods as long as the row stays the same.

Where all rules look at one row at a time, the search for victims finds on a row what it found there
before, unless the row's node or pods changed since. The journal says which rows did; only those are
tried again, and the costs of all candidates are in columns.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from typing_extensions import override

from podium.engine.framework.rule import Activity
from podium.engine.preemption.criteria import PRIORITY_OFFSET, TabledCandidates, VictimCosts
from podium.engine.state.journal import Follower, rows_in
from podium.engine.state.view import KeptInView

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.criteria import VictimTable
    from podium.engine.preemption.row_search import TriedRow
    from podium.engine.state.view import View

#: Bytes of the columns per row, and how many of them are kept for all classes together.
BYTES_PER_ROW = 64
BUDGET_BYTES = 1 << 26
#: After so many searches with some row tried again, all rows are.
MOST_SOURCES = 4096


class Source(Protocol):
    """A search that found victims on some rows."""

    def victims_at(self, position: int) -> Victims:
        """The victims on one row."""


class Tried(Source, Protocol):
    """Rows on which victims were searched."""

    rows: np.ndarray
    has_lower: np.ndarray
    codes: np.ndarray
    candidates: np.ndarray


class RowVerdicts(NamedTuple):
    """Rows that were tried: the verdicts on them, apart from the victims."""

    rows: np.ndarray
    has_lower: np.ndarray
    codes: np.ndarray
    errors: dict[int, str]
    candidates: np.ndarray


@dataclass(slots=True)
class KeptCosts(VictimCosts):
    """The costs of candidates whose victims are kept."""

    counts: np.ndarray
    violations: np.ndarray
    _first: np.ndarray
    _sums: np.ndarray
    _earliest: np.ndarray

    @override
    def first_priority(self) -> np.ndarray:
        return self._first

    @override
    def priority_sum(self) -> np.ndarray:
        return self._sums

    @override
    def earliest(self) -> np.ndarray:
        return self._earliest


class KeptCandidates(TabledCandidates):
    """Candidates of a search that used what was kept; in node order."""

    def __init__(
        self,
        names: np.ndarray,
        rows: np.ndarray,
        costs: KeptCosts,
        sources: Sequence[Source],
        places: tuple[np.ndarray, np.ndarray],
        *,
        tried: Sequence[RowVerdicts],
    ) -> None:
        super().__init__(names, rows)
        self._costs = costs
        #: Searches, and which of them and where in it has the victims of each candidate.
        self._sources = sources
        self._places = places
        #: All rows that were looked at, in node order; filled in where none is a candidate.
        self.tried = tried

    @override
    def table(self) -> VictimCosts:
        return self._costs

    @override
    def _victims_at(self, place: int) -> Victims:
        source, position = self._places
        found: Source = self._sources[source.item(place)]
        return found.victims_at(position.item(place))


class KeptVictims:
    """What the search found on the rows of a view, for one class of pods and one policy."""

    def __init__(self, view: View, key: Hashable) -> None:
        self._view = view
        #: What the answers depend on besides rows.
        self.key = key
        self._follower = Follower(view.journal.rows, view.journal)
        self._start_over()

    def _start_over(self) -> None:
        self._follower.start_over()
        size = self._view.nodes.capacity
        self._known = np.zeros(size, np.bool_)
        self._candidate = np.zeros(size, np.bool_)
        self._has_lower = np.zeros(size, np.bool_)
        self._codes = np.zeros(size, np.int32)
        self._counts = np.zeros(size, np.int64)
        self._violations = np.zeros(size, np.int64)
        self._first = np.zeros(size, np.int64)
        self._sums = np.zeros(size, np.int64)
        self._earliest = np.zeros(size, np.float64)
        #: The searches that found something, and for each row which of them and where there.
        self._sources: list[Source] = []
        self._source = np.zeros(size, np.int32)
        self._position = np.zeros(size, np.int32)

    def refresh(self) -> None:
        """Forget rows that changed since the last search."""
        news = self._follower.news()
        if news is None or len(self._sources) > MOST_SOURCES:
            self._start_over()
        elif news:
            self._known[[*rows_in(news)]] = False

    def unknown(self, rows: np.ndarray) -> np.ndarray:
        """Those of the rows that have to be tried."""
        found: np.ndarray = rows[~self._known.take(rows)]
        return found

    def put(self, tried: Tried, table: Callable[[], VictimTable]) -> None:
        """Keep what was found on rows; *table* makes the costs of the candidates among them."""
        rows = tried.rows
        self._known[rows] = True
        self._codes[rows], self._has_lower[rows] = tried.codes, tried.has_lower
        self._candidate[rows] = False
        self._source[rows], self._position[rows] = len(self._sources), np.arange(len(rows))
        self._sources.append(tried)
        if not len(tried.candidates):
            return
        rows, costs = rows[tried.candidates], table()
        self._candidate[rows] = True
        self._counts[rows], self._violations[rows] = costs.counts, costs.violations
        some = costs.counts > 0
        if some.all():
            self._first[rows] = costs.first_priority()
            self._sums[rows] = costs.priority_sum()
            self._earliest[rows] = costs.earliest()
        elif some.any():
            begin, evicting = costs.begin[some], rows[some]
            self._first[evicting] = costs.priority[begin]
            self._sums[evicting] = np.add.reduceat(costs.priority + PRIORITY_OFFSET, begin)

    def put_row(self, tried: TriedRow) -> None:
        """Keep what was found on one row."""
        row = tried.row
        self._known[row] = True
        self._codes[row], self._has_lower[row] = tried.code, tried.has_lower
        self._candidate[row] = tried.is_candidate
        self._source[row], self._position[row] = len(self._sources), 0
        self._sources.append(tried)
        if not tried.is_candidate:
            return
        victims = tried.listed()
        self._counts[row], self._violations[row] = len(victims), tried.violations
        if victims:
            priorities = [pod.priority for pod in victims]
            highest = max(priorities)
            self._first[row] = priorities[0]
            self._sums[row] = sum(priorities) + PRIORITY_OFFSET * len(priorities)
            self._earliest[row] = min(p.started for p in victims if p.priority == highest)

    def candidates_among(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The candidates among known rows, and how many budgets each violates."""
        found: np.ndarray = rows[self._candidate.take(rows)]
        return found, self._violations.take(found)

    def listed(self, tried: np.ndarray, rows: np.ndarray) -> KeptCandidates:
        """The candidates on some of the rows that were tried."""
        costs = KeptCosts(
            self._counts.take(rows),
            self._violations.take(rows),
            self._first.take(rows),
            self._sums.take(rows),
            self._earliest.take(rows),
        )
        verdicts = []
        if not len(rows):
            codes, has_lower = self._codes[tried], self._has_lower[tried]
            verdicts.append(RowVerdicts(tried, has_lower, codes, {}, np.zeros(0, np.int64)))
        places = self._source.take(rows), self._position.take(rows)
        names = self._view.nodes.name_array()
        return KeptCandidates(names, rows, costs, self._sources, places, tried=verdicts)


#: By class and policy; what was not asked for longest goes first.
_KEPT: KeptInView[OrderedDict[Hashable, KeptVictims]] = KeptInView()


def kept_for(failed: FailedSearch, policy: Hashable) -> KeptVictims | None:
    """What is kept for the class of the pod, up to date; None where rows do not decide alone."""
    pod, view = failed.pod, failed.view
    if not failed.may_keep or view.pods.nominated or view.pods.unknown_nodes:
        return None
    activities: list[tuple[int, Hashable]] = []
    for position, rule in failed.rules:
        if rule.scope(pod.cls).of_row:
            activities.append((position, rule.answer_key(pod, view)))
            continue
        activity = rule.activity(pod, view)
        if activity is Activity.ACTIVE:
            return None
        if activity is Activity.OWN_ROW and rule.row_context(pod, view) is not None:
            return None
        activities.append((position, activity))
    catalog = view.catalog
    key = (
        tuple(failed.rules),
        tuple(activities),
        catalog.budgets.version,
        catalog.namespaces.version,
    )
    ledger = _KEPT.of(view, None, OrderedDict)
    name = (pod.cls.id, policy)
    found = ledger.get(name)
    if found is None or found.key != key:
        found = ledger[name] = KeptVictims(view, key)
        most = max(1, BUDGET_BYTES // (BYTES_PER_ROW * view.nodes.capacity))
        while len(ledger) > most:
            ledger.popitem(last=False)
    else:
        found.refresh()
    ledger.move_to_end(name)
    return found
