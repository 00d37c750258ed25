"""Scores of the feasible rows: a matrix priority x row, and its weighted sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.contracts import AttemptError
from podium.engine.decision import ScoreColumn
from podium.engine.rows import ManyRows

if TYPE_CHECKING:
    from podium.engine.pod_class import Incoming
    from podium.engine.profile import Profile, Weighted
    from podium.engine.view import View


def score(
    pod: Incoming, view: View, profile: Profile, rows: np.ndarray
) -> tuple[tuple[ScoreColumn, ...], np.ndarray]:
    """Every priority over all feasible rows, and the totals."""
    totals = np.zeros(len(rows), np.int64)
    if not profile.priorities and not profile.extenders:
        return (), totals + 1
    columns: list[ScoreColumn] = []
    errors: list[str] = []
    for weighted in profile.priorities:
        try:
            column = _column(pod, view, weighted, rows)
        except AttemptError as error:
            errors += error.args
            continue
        if column is not None:
            columns.append(column)
            totals += column.score * weighted.weight
    if errors:
        raise AttemptError(*errors)
    return tuple(columns), totals


def total(pod: Incoming, view: View, profile: Profile, rows: np.ndarray) -> np.ndarray:
    """The totals alone. What a priority gives to every row alike is added once, at the end."""
    totals, alike = np.zeros(len(rows), np.int64), 0
    if not profile.priorities and not profile.extenders:
        return totals + 1
    at = ManyRows(view, rows, {})
    errors: list[str] = []
    for weighted in profile.priorities:
        priority = weighted.priority
        skips = getattr(priority, "skips", None)
        try:
            if skips is not None and skips(pod, at):
                continue
            uniform = priority.uniform(pod, view)
            if uniform is not None:
                alike += uniform * weighted.weight
                continue
            raw = np.broadcast_to(np.asarray(priority.score(pod, at), np.int64), rows.shape)
            final = priority.reduce(pod, at, raw) if priority.reduces else raw
        except AttemptError as error:
            errors += error.args
            continue
        totals += final * weighted.weight
    if errors:
        raise AttemptError(*errors)
    return totals + alike


def _column(pod: Incoming, view: View, weighted: Weighted, rows: np.ndarray) -> ScoreColumn | None:
    """What one priority gives; None when it leaves itself out."""
    priority, weight = weighted.priority, weighted.weight
    skips = getattr(priority, "skips", None)
    if skips is not None and skips(pod, ManyRows(view, rows)):
        return None
    uniform = priority.uniform(pod, view)
    if uniform is not None:
        same = np.full(len(rows), uniform, np.int64)
        raw = np.zeros(len(rows), np.int64) if priority.reduces else same
        return ScoreColumn(priority.name, weight, raw, same, uniform=True)
    at = ManyRows(view, rows)
    raw = np.broadcast_to(np.asarray(priority.score(pod, at), np.int64), rows.shape)
    final = priority.reduce(pod, at, raw) if priority.reduces else raw
    return ScoreColumn(priority.name, weight, raw, np.broadcast_to(final, rows.shape))
