"""The second run of the filters: rows that pods are nominated to, with those pods on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.pipelines.filtering import ERROR, run_filters_with_nominated
from podium.engine.preemption.batch_filter import BatchTrial, batch_rows
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.rule import Positioned
    from podium.engine.pipelines.filtering import Fit
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def respect_nominations(
    pod: Incoming,
    view: View,
    rules: Sequence[Positioned],
    rows: np.ndarray,
    fit: Fit,
    *,
    check_all: bool,
    nominees_count_for_affinity: bool,
    min_batch_rows: int,
) -> None:
    """Reject rows on which the pod fits only as long as the pods nominated to them are absent."""
    names = list(filter(view.nodes.row_of.__contains__, view.pods.nominated))
    nominated = np.flatnonzero(np.isin(rows, view.nodes.rows_named(names)))
    distinct, place = np.unique(rows[nominated], return_inverse=True)
    batch = batch_rows(pod, view, rules, distinct, min_batch_rows=min_batch_rows)
    if batch.any():
        trial = BatchTrial(
            pod,
            view,
            rules,
            distinct,
            PodArrays.none(),
            nominees_count_for_affinity=nominees_count_for_affinity,
            check_all=check_all,
        )
        found = trial.filter_with_nominees(np.flatnonzero(batch))
        # The index of each row of `distinct` among those in the batch.
        index = np.cumsum(batch) - 1
        in_batch = batch[place]
        _take_over(fit, nominated[in_batch], found, index[place[in_batch]])
        nominated = nominated[~in_batch]
    for position in nominated.tolist():
        row = TrialRow(view, int(rows[position]))
        code = run_filters_with_nominated(
            pod,
            row,
            rules,
            check_all=check_all,
            nominees_count_for_affinity=nominees_count_for_affinity,
        )
        fit.codes[position] = code
        fit.errors.pop(position, None)
        if row.errors:
            fit.errors[position] = row.errors[0]


def _take_over(fit: Fit, positions: np.ndarray, with_nominees: Fit, index: np.ndarray) -> None:
    """Let the verdicts with nominated pods replace those without, where they reject the row."""
    rejected = with_nominees.codes[index] != FITS
    positions, index = positions[rejected], index[rejected]
    fit.codes[positions] = with_nominees.codes[index]
    for position in set(fit.errors).intersection(positions.tolist()):
        del fit.errors[position]
    failed = with_nominees.codes[index] == ERROR
    texts = map(with_nominees.errors.__getitem__, index[failed].tolist())
    fit.errors.update(zip(positions[failed].tolist(), texts, strict=True))
