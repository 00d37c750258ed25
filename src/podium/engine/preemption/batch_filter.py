"""Rules asked about many trials at once: on which rows that holds, and what they say.

A predicate that reads the pods on a row says where its answers on trial can be had in lockstep
(`lockstep`); where its answers do not change at all when pods come and go, it is `settled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.cycle.filtering import ERROR, Fit, idle, merged
from podium.engine.framework.rule import Scope
from podium.engine.rows.many import ManyRows
from podium.engine.rows.pod_arrays import Crowd
from podium.engine.rows.trial_many import TrialRows
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.rule import Predicate
    from podium.engine.rows.trial_many import Trials
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

#: Fewer rows than this are quicker one by one.
WORTH_IT = 8


def in_lockstep(
    pod: Incoming, view: View, predicates: Sequence[Predicate], rows: np.ndarray
) -> np.ndarray | None:
    """The rows on which trials can be held together; None when it is not worth it."""
    if len(rows) < WORTH_IT:
        return None
    at = ManyRows(view, rows)
    together = np.ones(len(rows), np.bool_)
    for predicate in predicates:
        if predicate.scope(pod.cls) <= Scope.NODE:
            continue
        ask = getattr(predicate, "lockstep", None)
        if ask is not None:
            together &= ask(pod, at)
        elif view.nominated or not idle(predicate, pod, view):
            return None
    if view.nominated and pod.cls.volumes:
        # Volumes of pods yet to come are counted on single rows only.
        promised = Crowd.promised(view, rows, pod)
        together[promised.place[promised.by_class(_has_volumes) > 0]] = False
    return together if together.sum() >= WORTH_IT else None


def _has_volumes(cls: PodClass) -> bool:
    return bool(cls.volumes)


class Jury:
    """The predicates that take part in trials, in order."""

    def __init__(
        self, pod: Incoming, predicates: Sequence[Predicate], *, check_all: bool = False
    ) -> None:
        self.pod = pod
        self.check_all = check_all
        self.predicates = [p for p in predicates if p.scope(pod.cls) is not Scope.NONE]
        #: Those whose answers change when pods come and go.
        self._moved = [p for p in self.predicates if not _is_settled(p, pod)]

    def judge(self, trials: Trials, places: np.ndarray) -> Fit:
        """First with promised pods where there are any, then without."""
        return self._judge(trials, places, self.predicates)

    def unfit(self, trials: Trials, places: np.ndarray) -> np.ndarray:
        """Where the pod fits no more, as far as that changes with the pods on a row."""
        found: np.ndarray = self._judge(trials, places, self._moved).codes != FITS
        return found

    def _judge(self, trials: Trials, places: np.ndarray, predicates: list[Predicate]) -> Fit:
        fit = self.ask(TrialRows(trials, places, crowded=False), predicates)
        promised = np.flatnonzero(trials.crowded[places])
        if len(promised):
            at = TrialRows(trials, places[promised], crowded=True)
            first = self.ask(at, predicates)
            said = first.codes != FITS
            fit.codes[promised[said]] = first.codes[said]
            failed = promised[list(first.errors)].tolist()
            fit.errors.update(zip(failed, first.errors.values(), strict=True))
        return fit

    def ask(self, at: TrialRows, predicates: Sequence[Predicate]) -> Fit:
        """The first verdict of each row, or all of them as one."""
        codes = np.zeros(len(at), np.int32)
        errors: dict[int, str] = {}
        for predicate in predicates:
            alive = codes != ERROR if self.check_all else codes == FITS
            at.errors = {}
            answers = np.broadcast_to(predicate.reject(self.pod, at), codes.shape)
            told = merged(at.view, np.maximum(codes, FITS), answers) if self.check_all else answers
            codes = np.where(alive, told, codes).astype(np.int32)
            failed = np.fromiter(at.errors, np.int64, len(at.errors))
            failed = failed[alive[failed]]
            codes[failed] = ERROR
            texts = map(at.errors.__getitem__, failed.tolist())
            errors.update(zip(failed.tolist(), texts, strict=True))
        return Fit(codes, errors)


def _is_settled(predicate: Predicate, pod: Incoming) -> bool:
    return predicate.scope(pod.cls) <= Scope.NODE or bool(getattr(predicate, "settled", False))
