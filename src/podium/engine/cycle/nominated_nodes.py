"""The second look: rows promised to other pods, with those pods on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.cycle.filtering import ERROR, judge_with_nominated
from podium.engine.preemption.batch_filter import Jury, in_lockstep
from podium.engine.rows.pod_arrays import Crowd
from podium.engine.rows.trial_many import TrialRows, Trials
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.cycle.filtering import Fit
    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def respect_nominations(
    pod: Incoming,
    view: View,
    predicates: Sequence[Predicate],
    rows: np.ndarray,
    fit: Fit,
    *,
    check_all: bool,
    fully: bool = False,
) -> None:
    """Turn down rows that fit only as long as the pods promised to them are not there."""
    names = list(filter(view.row_of.__contains__, view.nominated))
    promised = np.flatnonzero(np.isin(rows, view.rows_named(names)))
    distinct, place = np.unique(rows[promised], return_inverse=True)
    together = in_lockstep(pod, view, predicates, distinct)
    if together is not None:
        trials = Trials(pod, view, distinct, Crowd([], np.zeros(0, np.int64), 0), fully=fully)
        at = TrialRows(trials, np.flatnonzero(together), crowded=True)
        jury = Jury(pod, predicates, check_all=check_all)
        # A row of `distinct` -> its place among those looked at together.
        number = np.cumsum(together) - 1
        jointly = together[place]
        _take_over(fit, promised[jointly], jury.ask(at, jury.predicates), number[place[jointly]])
        promised = promised[~jointly]
    for position in promised.tolist():
        trial = TrialRow(view, int(rows[position]))
        code = judge_with_nominated(pod, trial, predicates, check_all=check_all, fully=fully)
        fit.codes[position] = code
        fit.errors.pop(position, None)
        if trial.errors:
            fit.errors[position] = trial.errors[0]


def _take_over(fit: Fit, positions: np.ndarray, crowded: Fit, place: np.ndarray) -> None:
    """What was said with the promised pods there goes first, if anything was."""
    said = crowded.codes[place] != FITS
    positions, place = positions[said], place[said]
    fit.codes[positions] = crowded.codes[place]
    for position in set(fit.errors).intersection(positions.tolist()):
        del fit.errors[position]
    failed = crowded.codes[place] == ERROR
    texts = map(crowded.errors.__getitem__, place[failed].tolist())
    fit.errors.update(zip(positions[failed].tolist(), texts, strict=True))
