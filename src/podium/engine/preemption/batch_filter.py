"""Filters over many rows that pods were removed from, in one batch.

A filter states on which rows trials may be evaluated in a batch, and whether its answers there
change at all when pods come and go (`FilterRule.batch_trials`). All other rows are filtered one
after the other, in `row_search`. A property test holds the two forms equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import Activity
from podium.engine.pipelines.filtering import Fit, active, run_filters
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.rows import ManyRows
from podium.engine.rows.trial_many import PodRemovals, TrialRows
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.rule import Positioned
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def batch_rows(
    pod: Incoming,
    view: View,
    rules: Sequence[Positioned],
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
    for each in rules:
        if view.pods.nominated or each.rule.activity(pod, view) > Activity.IDLE:
            batch &= each.rule.batch_trials(pod, at).rows
    if view.pods.nominated and pod.cls.volumes:
        # The volumes of nominated pods are counted on single rows only.
        nominees = PodArrays.nominated(view, rows, pod)
        batch[nominees.position[nominees.by_class(lambda cls: len(cls.volumes)) > 0]] = False
    return batch if batch.sum() >= min_batch_rows else none


class BatchTrial:
    """Rows that pods were removed from; every filter runs once over all of them.

    Rows are named by their positions, pods by their indices in the `PodArrays` of the trial.
    """

    def __init__(
        self,
        pod: Incoming,
        view: View,
        rules: Sequence[Positioned],
        rows: np.ndarray,
        pods: PodArrays,
        *,
        nominees_count_for_affinity: bool,
        check_all: bool = False,
    ) -> None:
        self._pod = pod
        self._check_all = check_all
        # A filter that rejects nothing now rejects nothing when pods are removed; only nominated
        # pods could change that.
        self._rules = list(rules) if view.pods.nominated else active(pod, view, rules)
        #: The filters whose answers change when pods come and go.
        no_rows = ManyRows(view, rows[:0])
        self._reading_pods = [
            each for each in self._rules if not each.rule.batch_trials(pod, no_rows).constant
        ]
        self._removals = PodRemovals(
            pod, view, rows, pods, nominees_count_for_affinity=nominees_count_for_affinity
        )
        self.put_back = self._removals.put_back
        self.remove = self._removals.remove

    def filter(self, positions: np.ndarray) -> Fit:
        """The verdict on each row, first with its nominated pods, then without them."""
        return self._filter(positions, self._rules)

    def fits(self, positions: np.ndarray) -> np.ndarray:
        """Whether the pod fits on rows on which it did fit before pods were put back."""
        found: np.ndarray = self._filter(positions, self._reading_pods).codes == FITS
        return found

    def filter_with_nominees(self, positions: np.ndarray) -> Fit:
        """The verdict on each row with its nominated pods."""
        at = TrialRows(self._removals, positions, with_nominees=True)
        return self._run(at, self._rules)

    def _filter(self, positions: np.ndarray, rules: Sequence[Positioned]) -> Fit:
        fit = self._run(TrialRows(self._removals, positions, with_nominees=False), rules)
        nominated = np.flatnonzero(self._removals.has_nominees[positions])
        if len(nominated):
            at = TrialRows(self._removals, positions[nominated], with_nominees=True)
            first = self._run(at, rules)
            rejected = first.codes != FITS
            fit.codes[nominated[rejected]] = first.codes[rejected]
            failed = nominated[list(first.errors)].tolist()
            fit.errors.update(zip(failed, first.errors.values(), strict=True))
        return fit

    def _run(self, at: TrialRows, rules: Sequence[Positioned]) -> Fit:
        return run_filters(self._pod, at, rules, check_all=self._check_all)
