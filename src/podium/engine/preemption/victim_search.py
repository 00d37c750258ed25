"""The choice of victims on many rows at once.

The same steps as on one row, in lockstep: all pods of lower priority are taken away everywhere,
then the most important one of each row is put back, then the next, and rows where the pod does not
fit any more lose that one. Rows on which some predicate must look at pods one by one are tried by
themselves. A property test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.cycle.filtering import ERROR, Fit, idle, judge_with_nominated
from podium.engine.framework.decision import Victims
from podium.engine.preemption.batch_filter import Jury
from podium.engine.preemption.victim_order import by_importance, sorted_by_importance
from podium.engine.rows.pod_arrays import Crowd
from podium.engine.rows.trial_many import Trials
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.view import View

OFFSET = 1 << 31
_STARTED = attrgetter("started")


class MassVictims(Mapping[str, Victims]):
    """Candidates by node name, in node order; victims are spelled out when asked for."""

    def __init__(self, trial: MassTrial, alive: np.ndarray, victim: np.ndarray) -> None:
        self._trial = trial
        self._names = trial.view.names_of(trial.rows[alive])
        #: Which rows of the trial are candidates.
        self.alive = alive
        self._victim = victim

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Victims:
        row = self._trial.view.row_of.get(name, -1)
        place = np.flatnonzero(self.alive & (self._trial.rows == row))
        if not len(place):
            raise KeyError(name)
        return self._trial.victims(int(place[0]), self._victim)

    def up_to(self, wanted: int) -> int | None:
        """The place of the row at which there are enough candidates, one without violations."""
        violations = self.costs()["fewest budget violations"]
        enough = np.arange(1, len(self._names) + 1) >= wanted
        met = enough & np.logical_or.accumulate(violations == 0)
        return int(np.flatnonzero(self.alive)[np.argmax(met)]) if met.any() else None

    def among(self, rows: np.ndarray) -> MassVictims:
        """Only the candidates on flagged rows."""
        if rows.all():
            return self
        return MassVictims(self._trial, self.alive & rows, self._victim)

    def with_victims(self) -> MassVictims:
        """Only those where somebody has to go."""
        victims = np.bincount(self._trial.crowd.place[self._victim], minlength=len(self.alive))
        return self.among(victims > 0)

    def first(self, rows: int) -> MassVictims:
        """Only the candidates among the first so many rows."""
        return self.among(np.arange(len(self.alive)) < rows)

    def costs(self) -> dict[str, np.ndarray]:
        """What each candidate costs by the criteria that can be told for all at once."""
        trial, size = self._trial, len(self._trial.rows)
        chosen = np.flatnonzero(self._victim)
        place = trial.crowd.place[chosen]
        priority = trial.crowd.priority[chosen]
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
        if trial.started is not None:
            highest = np.full(size, -OFFSET)
            np.maximum.at(highest, place, priority)
            top = priority == highest[place]
            earliest = np.full(size, np.inf)
            np.minimum.at(earliest, place[top], trial.started[chosen][top])
            columns["latest start of the most important victims"] = -earliest
        return {name: column[self.alive] for name, column in columns.items()}


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
        together: np.ndarray,
        by_importance: bool,
    ) -> None:
        self.pod, self.view, self.rows = pod, view, rows
        self._predicates = predicates
        self._spell_out = spell_out
        #: The rows that are tried in lockstep.
        self._together = together
        #: Whether pods count by their time on the node too, promised ones count for everything,
        #: and victims are told most important first, not in the order they were put back.
        self.by_importance = by_importance
        everybody = Crowd.on(view, rows)
        lower = np.flatnonzero(everybody.priority < pod.priority)
        self.crowd = everybody.only(lower)
        #: When each pod started, where that counts.
        self.started: np.ndarray | None = None
        self.protected = np.zeros(len(lower), np.bool_)

    def sort(self, protect: Callable[[MassTrial], np.ndarray]) -> None:
        """Most important first; then those that budgets protect before the others."""
        crowd = self.crowd
        if self.by_importance:
            self.started = np.fromiter(map(_STARTED, crowd.pods), np.float64, len(crowd))
            self._arrange(by_importance(crowd.place, crowd.priority, self.started))
        else:
            self._arrange(np.lexsort((-crowd.priority, crowd.place)))
        self.protected = protect(self)
        if self.protected.any():
            self._arrange(np.lexsort((~self.protected, self.crowd.place)))

    def _arrange(self, order: np.ndarray) -> None:
        self.crowd = self.crowd.only(order)
        self.protected = self.protected[order]
        if self.started is not None:
            self.started = self.started[order]

    def running_count(self, flags: np.ndarray) -> np.ndarray:
        """For each pod, how many flagged pods of its row there are up to and including it."""
        total = np.cumsum(flags)
        place = self.crowd.place
        starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        before = np.zeros(len(flags), np.int64)
        if len(flags):
            lengths = np.diff(np.r_[starts, len(flags)])
            before = np.repeat(total[starts] - flags[starts], lengths)
        return total - before

    def run(self) -> tuple[MassVictims, Fit]:
        """The candidates, and what was said of each row without the pods of lower priority."""
        trials = Trials(self.pod, self.view, self.rows, self.crowd, fully=self.by_importance)
        # Who turns nobody down now does not when pods leave; only promised pods could change that.
        view, predicates = self.view, self._predicates
        if not view.nominated:
            predicates = [each for each in predicates if not idle(each, self.pod, view)]
        jury = Jury(self.pod, predicates)
        places = np.flatnonzero(self._together)
        fit = Fit(np.full(len(self.rows), ERROR, np.int32), {})
        told = jury.judge(trials, places)
        fit.codes[places] = told.codes
        failed = places[list(told.errors)].tolist()
        fit.errors.update(zip(failed, told.errors.values(), strict=True))
        alive = fit.codes == FITS
        victim = np.zeros(len(self.crowd), np.bool_)
        rank = self.running_count(np.ones(len(self.crowd), np.int64))
        by_rank = np.argsort(rank, kind="stable")
        edges = np.searchsorted(rank[by_rank], np.arange(1, (rank.max(initial=0)) + 2))
        for begin, end in pairwise(edges.tolist()):
            pods = by_rank[begin:end]
            pods = pods[alive[self.crowd.place[pods]]]
            trials.put_back(pods)
            crowded = pods[jury.unfit(trials, self.crowd.place[pods])]
            trials.take(crowded)
            victim[crowded] = True
        for place in np.flatnonzero(~self._together).tolist():
            self._try_alone(place, fit, victim)
        return MassVictims(self, fit.codes == FITS, victim), fit

    def _try_alone(self, place: int, fit: Fit, victim: np.ndarray) -> None:
        """The same on one row."""
        trial = TrialRow(self.view, int(self.rows[place]))
        begin, end = np.searchsorted(self.crowd.place, [place, place + 1]).tolist()
        for resident in self.crowd.pods[begin:end]:
            trial.remove(resident)
        fit.codes[place] = self._judge(trial)
        if trial.errors:
            fit.errors[place] = trial.errors[0]
        if fit.codes[place] != FITS:
            return
        for number in range(begin, end):
            trial.add(self.crowd.pods[number])
            if self._judge(trial) != FITS:
                trial.errors.clear()
                trial.remove(self.crowd.pods[number])
                victim[number] = True

    def _judge(self, trial: TrialRow) -> int:
        return judge_with_nominated(self.pod, trial, self._predicates, fully=self.by_importance)

    def victims(self, place: int, victim: np.ndarray) -> Victims:
        """The victims of one row."""
        begin, end = np.searchsorted(self.crowd.place, [place, place + 1]).tolist()
        chosen = victim[begin:end]
        protected = self.protected[begin:end]
        violations = int((protected & chosen).sum())
        victims = list(compress(self.crowd.pods[begin:end], chosen))
        if self.by_importance and protected.any() and not protected.all():
            victims = sorted_by_importance(victims)
        return self._spell_out(victims, violations)
