"""The choice of victims on many rows at once.

The same steps as on one row, in lockstep: all pods of lower priority are taken away everywhere,
then the most important one of each row is put back, then the next, and rows where the pod does not
fit any more lose that one. It holds where only the room on a node decides (`applies`); the plain
way, one `TrialRow` after the other, holds always, and a property test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.contracts import Scope
from podium.engine.decision import Victims
from podium.engine.fit import idle
from podium.engine.rows import ManyRows
from podium.engine.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.engine.contracts import Predicate
    from podium.engine.pod_class import Incoming, PodClass, Resident
    from podium.engine.tallies import Ints
    from podium.engine.view import View

#: Fewer rows than this are quicker one by one.
WORTH_IT = 8
OFFSET = 1 << 31
_CLASS = attrgetter("cls.id")


def applies(pod: Incoming, view: View, predicates: Sequence[Predicate], rows: np.ndarray) -> bool:
    """Whether taking pods away can change nothing but the room on a row."""
    if len(rows) < WORTH_IT:
        return False
    if view.nominated and any(view.names[row] in view.nominated for row in rows.tolist()):
        return False
    return all(
        predicate.scope(pod.cls) <= Scope.NODE
        or is_about_room(predicate, pod)
        or idle(predicate, pod, view)
        for predicate in predicates
    )


def is_about_room(predicate: Predicate, pod: Incoming) -> bool:
    """Whether of all pods on the row it reads only their number and what they request."""
    about = getattr(predicate, "about_room", None)
    return about is not None and bool(about(pod.cls))


class _RoomRows(ManyRows):
    """Rows with some of their pods taken away, as far as room is concerned."""

    __slots__ = ("_counts", "_requested")

    def __init__(
        self, view: View, index: np.ndarray, requested: dict[int, np.ndarray], counts: np.ndarray
    ) -> None:
        super().__init__(view, index)
        self._requested = requested
        self._counts = counts

    def requested(self, resource: int) -> Ints:
        """Without the pods taken away."""
        change = self._requested.get(resource)
        base = super().requested(resource)
        return base if change is None else base + change

    def pod_count(self) -> Ints:
        """Without the pods taken away."""
        return super().pod_count() + self._counts


class MassVictims(Mapping[str, Victims]):
    """Candidates by node name, in node order; victims are spelled out when asked for."""

    def __init__(self, trial: MassTrial, alive: np.ndarray, victim: np.ndarray) -> None:
        self._trial = trial
        self._names = [trial.view.names[row] for row in trial.rows[alive].tolist()]
        self._alive = alive
        self._victim = victim

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Victims:
        row = self._trial.view.row_of.get(name, -1)
        place = np.flatnonzero(self._alive & (self._trial.rows == row))
        if not len(place):
            raise KeyError(name)
        return self._trial.victims(int(place[0]), self._victim)

    def up_to(self, wanted: int) -> int | None:
        """The place of the row at which there are enough candidates, one without violations."""
        violations = self.costs()["fewest budget violations"]
        enough = np.arange(1, len(self._names) + 1) >= wanted
        met = enough & np.logical_or.accumulate(violations == 0)
        return int(np.flatnonzero(self._alive)[np.argmax(met)]) if met.any() else None

    def among(self, rows: np.ndarray) -> MassVictims:
        """Only the candidates on flagged rows."""
        if rows.all():
            return self
        return MassVictims(self._trial, self._alive & rows, self._victim)

    def first(self, rows: int) -> MassVictims:
        """Only the candidates among the first so many rows."""
        return self.among(np.arange(len(self._alive)) < rows)

    def costs(self) -> dict[str, np.ndarray]:
        """What each candidate costs by the criteria that can be told for all at once."""
        trial, size = self._trial, len(self._trial.rows)
        chosen = np.flatnonzero(self._victim)
        place = trial.place[chosen]
        priority = trial.priority[chosen]
        sums = np.zeros(size, np.int64)
        np.add.at(sums, place, priority + OFFSET)
        first = np.zeros(size, np.int64)
        # Backwards, so that the first victim of each row is written last.
        first[place[::-1]] = priority[::-1]
        if trial.by_importance:
            first = np.full(size, -OFFSET)
            np.maximum.at(first, place, priority)
        violations = np.bincount(place, weights=trial.protected[chosen], minlength=size)
        counts = np.bincount(place, minlength=size)
        columns = {
            "fewest budget violations": violations.astype(np.int64),
            "lowest highest priority": first,
            "lowest sum of priorities": sums,
            "fewest victims": counts,
        }
        return {name: column[self._alive] for name, column in columns.items()}


class MassTrial:
    """Pods of lower priority on many rows, in the order they are put back."""

    def __init__(
        self,
        pod: Incoming,
        view: View,
        predicates: Sequence[Predicate],
        rows: np.ndarray,
        spell_out: Callable[[list[Resident], int], Victims],
        *,
        by_importance: bool,
    ) -> None:
        self.pod, self.view, self.rows = pod, view, rows
        self._spell_out = spell_out
        #: Whether victims are told most important first, not in the order they were put back.
        self.by_importance = by_importance
        self._about_room = [p for p in predicates if is_about_room(p, pod)]
        self._others = [p for p in predicates if p.scope(pod.cls) is Scope.NODE]
        self._collect()

    def _collect(self) -> None:
        residents = self.view.residents
        lists = [residents[row] for row in self.rows.tolist()]
        self._flat = list(chain.from_iterable(lists))
        classes = np.fromiter(map(_CLASS, self._flat), np.int64, len(self._flat))
        self._known = {i: self.view.class_list[i] for i in np.unique(classes).tolist()}
        priority = self._per_class(classes, lambda cls: cls.priority)
        lower = np.flatnonzero(priority < self.pod.priority)
        #: For each pod: its place among all pods of the rows, its row, class and priority.
        self.number = lower
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        self.place = np.repeat(np.arange(len(lists)), lengths)[lower]
        self.classes, self.priority = classes[lower], priority[lower]
        self.protected = np.zeros(len(lower), np.bool_)

    def _per_class(self, classes: np.ndarray, fact: Callable[[PodClass], int]) -> np.ndarray:
        """A fact of the class of each pod, asked once per class."""
        table = np.zeros(max(self._known, default=0) + 1, np.int64)
        for i, cls in self._known.items():
            table[i] = fact(cls)
        found: np.ndarray = table[classes]
        return found

    @property
    def pods(self) -> list[Resident]:
        """The pods, in their present order."""
        return [self._flat[i] for i in self.number.tolist()]

    def sort(
        self,
        started: Callable[[Resident], float] | None,
        protect: Callable[[MassTrial], np.ndarray],
    ) -> None:
        """Most important first; then those that budgets protect before the others."""
        keys = [-self.priority, self.place]
        if started is not None:
            times = np.fromiter(map(started, self.pods), np.float64, len(self.number))
            # Without a start time: after those with one, and backwards.
            keys.insert(0, times)
            keys.insert(0, np.where(np.isinf(times), -self.number, self.number))
        self._arrange(np.lexsort(keys))
        self.protected = protect(self)
        if self.protected.any():
            self._arrange(np.lexsort((~self.protected, self.place)))

    def _arrange(self, order: np.ndarray) -> None:
        self.place, self.priority = self.place[order], self.priority[order]
        self.number, self.classes = self.number[order], self.classes[order]
        self.protected = self.protected[order]

    def running_count(self, flags: np.ndarray) -> np.ndarray:
        """For each pod, how many flagged pods of its row there are up to and including it."""
        total = np.cumsum(flags)
        starts = np.flatnonzero(np.r_[True, self.place[1:] != self.place[:-1]])
        before = np.zeros(len(flags), np.int64)
        if len(flags):
            lengths = np.diff(np.r_[starts, len(flags)])
            before = np.repeat(total[starts] - flags[starts], lengths)
        return total - before

    def run(self) -> tuple[MassVictims, np.ndarray]:
        """The candidates, and the verdict code of each row without the pods of lower priority."""
        size = len(self.rows)
        amounts = self._amounts()
        freed = {column: np.zeros(size, np.int64) for column in amounts}
        for column, numbers in amounts.items():
            np.add.at(freed[column], self.place, -numbers)
        counts = -np.bincount(self.place, minlength=size)
        codes = self._codes(np.arange(size), freed, counts, [*self._others, *self._about_room])
        alive = codes == FITS
        victim = np.zeros(len(self.number), np.bool_)
        rank = self.running_count(np.ones(len(self.number), np.int64))
        by_rank = np.argsort(rank, kind="stable")
        edges = np.searchsorted(rank[by_rank], np.arange(1, (rank.max(initial=0)) + 2))
        for begin, end in pairwise(edges.tolist()):
            entries = by_rank[begin:end]
            entries = entries[alive[self.place[entries]]]
            self._put_back(entries, amounts, freed, counts, victim)
        return MassVictims(self, alive, victim), codes

    def _put_back(
        self,
        entries: np.ndarray,
        amounts: dict[int, np.ndarray],
        freed: dict[int, np.ndarray],
        counts: np.ndarray,
        victim: np.ndarray,
    ) -> None:
        places = self.place[entries]
        for column, numbers in amounts.items():
            freed[column][places] += numbers[entries]
        counts[places] += 1
        crowded = self._codes(places, freed, counts, self._about_room) != FITS
        victim[entries[crowded]] = True
        for column, numbers in amounts.items():
            freed[column][places[crowded]] -= numbers[entries[crowded]]
        counts[places[crowded]] -= 1

    def _codes(
        self,
        places: np.ndarray,
        freed: dict[int, np.ndarray],
        counts: np.ndarray,
        predicates: Sequence[Predicate],
    ) -> np.ndarray:
        change = {column: numbers[places] for column, numbers in freed.items()}
        at = _RoomRows(self.view, self.rows[places], change, counts[places])
        codes = np.zeros(len(places), np.int32)
        for predicate in predicates:
            answers = np.broadcast_to(predicate.reject(self.pod, at), codes.shape)
            codes = np.where(codes == FITS, answers, codes)
        return codes

    def _amounts(self) -> dict[int, np.ndarray]:
        """Per resource column, what each pod takes."""
        taken = {i: dict(cls.taken) for i, cls in self._known.items()}
        columns = {column for amounts in taken.values() for column in amounts}
        return {
            column: self._per_class(self.classes, partial(_taken, taken, column))
            for column in columns
        }

    def victims(self, place: int, victim: np.ndarray) -> Victims:
        """The victims of one row."""
        begin, end = np.searchsorted(self.place, [place, place + 1])
        chosen = [i for i in range(int(begin), int(end)) if victim[i]]
        violations = sum(bool(self.protected[i]) for i in chosen)
        return self._spell_out([self._flat[self.number[i]] for i in chosen], violations)


def _taken(taken: dict[int, dict[int, int]], column: int, cls: PodClass) -> int:
    return taken[cls.id].get(column, 0)
