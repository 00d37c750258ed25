"""Filters over rows that pods were removed from: many rows in one batch, or row after row.

A filter that reads the pods on a row states on which rows its answers hold in a batch
(`lockstep`), and whether they change at all when pods come and go (`settled`). All other rows are
filtered one after the other. A property test holds the two forms equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from podium.engine.cycle.filtering import ERROR, Fit, idle, judge_with_nominated, merged
from podium.engine.framework.rule import Scope
from podium.engine.rows.many import ManyRows
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.trial_many import PodRemovals, TrialRows
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


def batch_rows(
    pod: Incoming,
    view: View,
    predicates: Sequence[Predicate],
    rows: np.ndarray,
    *,
    min_batch_rows: int,
) -> np.ndarray:
    """A flag for each row: whether trials on it can be filtered in a batch.

    No row is flagged where fewer than `min_batch_rows` would be: those are quicker one by one.
    """
    none = np.zeros(len(rows), np.bool_)
    if len(rows) < min_batch_rows:
        return none
    at = ManyRows(view, rows)
    batch = ~none
    for predicate in predicates:
        if predicate.scope(pod.cls) <= Scope.NODE:
            continue
        ask = getattr(predicate, "lockstep", None)
        if ask is not None:
            batch &= ask(pod, at)
        elif view.nominated or not idle(predicate, pod, view):
            return none
    if view.nominated and pod.cls.volumes:
        # The volumes of nominated pods are counted on single rows only.
        nominees = PodArrays.nominated(view, rows, pod)
        batch[nominees.position[nominees.by_class(_has_volumes) > 0]] = False
    return batch if batch.sum() >= min_batch_rows else none


def _has_volumes(cls: PodClass) -> bool:
    return bool(cls.volumes)


class Trial(Protocol):
    """Rows that pods were removed from, and what the filters say about them.

    Rows are named by their positions, pods by their indices in the `PodArrays` of the trial.
    """

    def filter(self, positions: np.ndarray) -> Fit:
        """The verdict on each row, first with its nominated pods, then without them."""

    def fits(self, positions: np.ndarray) -> np.ndarray:
        """Whether the pod fits on rows on which it did fit before pods were put back."""

    def put_back(self, pods: np.ndarray) -> None:
        """Put pods back on their rows, at most one on each row."""

    def remove(self, pods: np.ndarray) -> None:
        """Remove pods that were put back, at most one from each row."""


class BatchTrial:
    """A trial in which every filter runs once over all rows."""

    def __init__(
        self,
        pod: Incoming,
        view: View,
        predicates: Sequence[Predicate],
        rows: np.ndarray,
        pods: PodArrays,
        *,
        nominees_count_for_affinity: bool,
        check_all: bool = False,
    ) -> None:
        self._pod = pod
        self._check_all = check_all
        self._predicates = [p for p in predicates if p.scope(pod.cls) is not Scope.NONE]
        if not view.nominated:
            # A filter that rejects nothing now rejects nothing when pods are removed; only
            # nominated pods could change that.
            self._predicates = [p for p in self._predicates if not idle(p, pod, view)]
        #: The filters whose answers change when pods come and go.
        self._reading_pods = [p for p in self._predicates if not _is_settled(p, pod)]
        self._removals = PodRemovals(
            pod, view, rows, pods, nominees_count_for_affinity=nominees_count_for_affinity
        )
        self.put_back = self._removals.put_back
        self.remove = self._removals.remove

    def filter(self, positions: np.ndarray) -> Fit:
        """The verdict on each row, first with its nominated pods, then without them."""
        return self._filter(positions, self._predicates)

    def fits(self, positions: np.ndarray) -> np.ndarray:
        """Whether the pod fits on rows on which it did fit before pods were put back."""
        found: np.ndarray = self._filter(positions, self._reading_pods).codes == FITS
        return found

    def filter_with_nominees(self, positions: np.ndarray) -> Fit:
        """The verdict on each row with its nominated pods."""
        at = TrialRows(self._removals, positions, with_nominees=True)
        return self._run(at, self._predicates)

    def _filter(self, positions: np.ndarray, predicates: list[Predicate]) -> Fit:
        fit = self._run(TrialRows(self._removals, positions, with_nominees=False), predicates)
        nominated = np.flatnonzero(self._removals.has_nominees[positions])
        if len(nominated):
            at = TrialRows(self._removals, positions[nominated], with_nominees=True)
            first = self._run(at, predicates)
            rejected = first.codes != FITS
            fit.codes[nominated[rejected]] = first.codes[rejected]
            failed = nominated[list(first.errors)].tolist()
            fit.errors.update(zip(failed, first.errors.values(), strict=True))
        return fit

    def _run(self, at: TrialRows, predicates: Sequence[Predicate]) -> Fit:
        """The first verdict on each row; with `check_all`, all of them merged."""
        codes = np.zeros(len(at), np.int32)
        errors: dict[int, str] = {}
        for predicate in predicates:
            alive = codes != ERROR if self._check_all else codes == FITS
            at.errors = {}
            answers = np.broadcast_to(predicate.reject(self._pod, at), codes.shape)
            if self._check_all:
                answers = merged(at.view, np.maximum(codes, FITS), answers)
            codes = np.where(alive, answers, codes).astype(np.int32)
            failed = np.fromiter(at.errors, np.int64, len(at.errors))
            failed = failed[alive[failed]]
            codes[failed] = ERROR
            texts = map(at.errors.__getitem__, failed.tolist())
            errors.update(zip(failed.tolist(), texts, strict=True))
        return Fit(codes, errors)


def _is_settled(predicate: Predicate, pod: Incoming) -> bool:
    return predicate.scope(pod.cls) <= Scope.NODE or bool(getattr(predicate, "settled", False))


class RowTrial:
    """A trial in which the filters run on one row after the other."""

    def __init__(
        self,
        pod: Incoming,
        view: View,
        predicates: Sequence[Predicate],
        rows: np.ndarray,
        pods: PodArrays,
        *,
        nominees_count_for_affinity: bool,
    ) -> None:
        self._pod, self._view, self._predicates = pod, view, predicates
        self._rows = rows
        self._pods = pods
        self._nominees_count_for_affinity = nominees_count_for_affinity
        self._trials: dict[int, TrialRow] = {}

    def filter(self, positions: np.ndarray) -> Fit:
        """The verdict on each row, first with its nominated pods, then without them."""
        fit = Fit(np.zeros(len(positions), np.int32), {})
        begins = np.searchsorted(self._pods.position, positions).tolist()
        ends = np.searchsorted(self._pods.position, positions, side="right").tolist()
        for index, position in enumerate(positions.tolist()):
            trial = self._trials[position] = TrialRow(self._view, int(self._rows[position]))
            for pod in self._pods.pods[begins[index] : ends[index]]:
                trial.remove(pod)
            fit.codes[index] = self._judge(trial)
            if trial.errors:
                fit.errors[index] = trial.errors[0]
        return fit

    def fits(self, positions: np.ndarray) -> np.ndarray:
        """Whether the pod fits on rows on which it did fit before pods were put back."""
        found = np.zeros(len(positions), np.bool_)
        for index, trial in enumerate(map(self._trials.__getitem__, positions.tolist())):
            found[index] = self._judge(trial) == FITS
            trial.errors.clear()
        return found

    def put_back(self, pods: np.ndarray) -> None:
        """Put pods back on their rows, at most one on each row."""
        for pod, position in zip(pods.tolist(), self._pods.position[pods].tolist(), strict=True):
            self._trials[position].add(self._pods.pods[pod])

    def remove(self, pods: np.ndarray) -> None:
        """Remove pods that were put back, at most one from each row."""
        for pod, position in zip(pods.tolist(), self._pods.position[pods].tolist(), strict=True):
            self._trials[position].remove(self._pods.pods[pod])

    def _judge(self, trial: TrialRow) -> int:
        return judge_with_nominated(
            self._pod,
            trial,
            self._predicates,
            nominees_count_for_affinity=self._nominees_count_for_affinity,
        )
