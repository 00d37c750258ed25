"""The criteria by which preemption chooses among the candidate nodes, in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import override

from podium.engine.framework.decision import Victims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Added to every priority before they are summed, so that each victim makes the sum larger.
PRIORITY_OFFSET = 1 << 31

# What decides where no criterion has to, or none does.
NO_VICTIMS = "no victims"
ONLY_CANDIDATE = "only candidate"
FIRST_IN_NODE_ORDER = "first in node order"


class VictimCosts(ABC):
    """What evicting the victims of each candidate costs, by every criterion."""

    #: Of each candidate: its number of victims, and of budgets that evicting them violates.
    counts: np.ndarray
    violations: np.ndarray

    @abstractmethod
    def first_priority(self) -> np.ndarray:
        """The priority of the victim listed first, of each candidate."""

    @abstractmethod
    def priority_sum(self) -> np.ndarray:
        """The sum of the priorities of the victims, of each candidate."""

    @abstractmethod
    def earliest(self) -> np.ndarray:
        """The earliest start among the victims of the highest priority, of each candidate."""


class VictimTable(VictimCosts):
    """The victims of all candidates in columns: candidate after candidate, victims as listed."""

    def __init__(
        self,
        counts: np.ndarray,
        violations: np.ndarray,
        priority: np.ndarray,
        earliest: Callable[[VictimTable], np.ndarray],
    ) -> None:
        self.counts = counts
        self.violations = violations
        #: Of each victim.
        self.priority = priority
        #: Where the victims of each candidate begin.
        self.begin = np.cumsum(counts) - counts
        self._earliest = earliest

    @classmethod
    def of(cls, listed: Sequence[Victims]) -> VictimTable:
        """The table of victims that were listed one by one."""
        return cls(
            np.array([len(victims.pods) for victims in listed], np.int64),
            np.array([victims.violations for victims in listed], np.int64),
            np.array(list(chain.from_iterable(v.priorities for v in listed)), np.int64),
            lambda _: np.array([victims.earliest for victims in listed], np.float64),
        )

    def highest(self) -> np.ndarray:
        """The highest priority among the victims of each candidate."""
        found: np.ndarray = np.maximum.reduceat(self.priority, self.begin)
        return found

    @override
    def first_priority(self) -> np.ndarray:
        found: np.ndarray = self.priority[self.begin]
        return found

    @override
    def priority_sum(self) -> np.ndarray:
        found: np.ndarray = np.add.reduceat(self.priority + PRIORITY_OFFSET, self.begin)
        return found

    @override
    def earliest(self) -> np.ndarray:
        return self._earliest(self)


class TabledCandidates(Mapping[str, Victims]):
    """Candidates whose victims are in a table and are listed only when they are looked up."""

    def __init__(self, names: np.ndarray, rows: np.ndarray) -> None:
        """The *rows* of the nodes, in node order, and the *names* of all rows."""
        self._all_names, self._rows = names, rows
        #: The places of nodes that were chosen: their victims are looked up next.
        self._chosen: dict[str, int] = {}
        #: The victims that were looked up.
        self._victims: dict[str, Victims] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Victims:
        found = self._victims.get(name)
        if found is None:
            place = self._chosen.get(name)
            place = self._index[name] if place is None else place
            found = self._victims[name] = self._victims_at(place)
        return found

    @cached_property
    def _names(self) -> list[str]:
        found: list[str] = self._all_names.take(self._rows).tolist()
        return found

    @cached_property
    def _index(self) -> dict[str, int]:
        return dict(zip(self._names, range(len(self._names)), strict=True))

    def names_at(self, places: np.ndarray) -> tuple[str, ...]:
        """The nodes at these places, the chosen one first."""
        names = tuple(self._all_names.take(self._rows.take(places)).tolist())
        self._chosen[names[0]] = places.item(0)
        return names

    @abstractmethod
    def table(self) -> VictimCosts:
        """The costs of all candidates."""

    @abstractmethod
    def _victims_at(self, place: int) -> Victims:
        """The victims of the candidate at a place."""


class ListedCandidates(TabledCandidates):
    """Candidates whose victims were listed one by one."""

    def __init__(self, candidates: Mapping[str, Victims]) -> None:
        super().__init__(np.array(list(candidates), np.object_), np.arange(len(candidates)))
        self._candidates = list(candidates.values())

    @override
    def table(self) -> VictimTable:
        return VictimTable.of(self._candidates)

    @override
    def _victims_at(self, place: int) -> Victims:
        return self._candidates[place]


@dataclass(frozen=True, slots=True)
class Criterion:
    """A cost of evicting a candidate's victims; the candidates with the lowest stay."""

    name: str
    #: The cost of every candidate; each has at least one victim.
    costs: Callable[[VictimCosts], np.ndarray]


FEWEST_VIOLATIONS = Criterion("fewest budget violations", lambda table: table.violations)
#: The victim listed first counts as the most important one. In v1.13 that is one protected by a
#: budget if there is any.
LOWEST_FIRST_PRIORITY = Criterion("lowest highest priority", lambda table: table.first_priority())
LOWEST_PRIORITY_SUM = Criterion("lowest sum of priorities", lambda table: table.priority_sum())
FEWEST_VICTIMS = Criterion("fewest victims", lambda table: table.counts)
LATEST_START = Criterion(
    "latest start of the most important victims", lambda table: -table.earliest()
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The node chosen among the candidates."""

    node: str | None = None
    #: All nodes as good as the chosen one, itself included, when there are several.
    tie: tuple[str, ...] = ()
    #: The name of what decided.
    criterion: str = ""


def choose(candidates: Mapping[str, Victims], criteria: Sequence[Criterion]) -> Choice:
    """The candidate with the lowest costs; of equals, the first in node order.

    A candidate without victims is chosen before any criterion is looked at.
    """
    if not candidates:
        return Choice()
    if not isinstance(candidates, TabledCandidates):
        candidates = ListedCandidates(candidates)
    table = candidates.table()
    if not table.counts.all():
        return _first(candidates, np.flatnonzero(table.counts == 0), NO_VICTIMS, NO_VICTIMS)
    left, decisive = np.arange(len(candidates)), ONLY_CANDIDATE
    for step in narrowed(table, criteria):
        left, decisive = step.left, step.criterion.name
    return _first(candidates, left, decisive, FIRST_IN_NODE_ORDER)


class Narrowed(NamedTuple):
    """What a criterion did: the places of candidates before it, their costs, and those left."""

    criterion: Criterion
    before: np.ndarray
    costs: np.ndarray
    left: np.ndarray


def narrowed(table: VictimCosts, criteria: Sequence[Criterion]) -> Iterator[Narrowed]:
    """Apply the criteria in order, until one candidate is left."""
    left = np.arange(len(table.counts))
    for criterion in criteria:
        if len(left) == 1:
            return
        before, costs = left, criterion.costs(table)
        if len(left) < len(costs):
            costs = costs[left]
        lowest = costs == costs.min()
        if not lowest.all():
            left = left[lowest]
        yield Narrowed(criterion, before, costs, left)


def _first(candidates: TabledCandidates, left: np.ndarray, alone: str, among_equals: str) -> Choice:
    equals = candidates.names_at(left)
    if len(equals) == 1:
        return Choice(equals[0], (), alone)
    return Choice(equals[0], equals, among_equals)
