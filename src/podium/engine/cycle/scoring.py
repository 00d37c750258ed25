"""Scores of the feasible rows: a matrix priority x row, and its weighted sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.decision import ScoreColumn
from podium.engine.framework.rule import AttemptError
from podium.engine.rows.many import ManyRows

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def check_ready(pod: Incoming, view: View, profile: Profile) -> None:
    """Fail if some score cannot be worked out for pods of this class, wherever they go."""
    if not profile.pre_scores or not (profile.priorities or profile.extenders):
        return

    def first() -> str:
        for rule in profile.pre_scores:
            if fault := rule.unready(pod, view):
                return f'running PreScore plugin "{rule.name}": {fault}'
        return ""

    if fault := pod.cls.once(("unready", profile.pre_scores), first):
        raise AttemptError(fault)


def _check_range(name: str, scores: np.ndarray, profile: Profile) -> None:
    """Fail if a score is none."""
    wrong = scores[(scores < 0) | (scores > profile.max_score)]
    if len(wrong):
        raise AttemptError(
            f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid '
            f"score {wrong[0]}, it should in the range of [0, {profile.max_score}] "
            "after normalizing"
        )


def score(
    pod: Incoming, view: View, profile: Profile, rows: np.ndarray
) -> tuple[tuple[ScoreColumn, ...], np.ndarray]:
    """Every priority over all feasible rows, and the totals."""
    totals = np.zeros(len(rows), np.int64)
    if not profile.priorities and not profile.extenders:
        return (), totals + 1
    check_ready(pod, view, profile)
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
    if profile.checks_scores:
        for column in columns:
            _check_range(column.name, column.score, profile)
    return tuple(columns), totals


def total(pod: Incoming, view: View, profile: Profile, rows: np.ndarray) -> np.ndarray:
    """The totals alone. What a priority gives to every row alike is added once, at the end."""
    totals, alike = np.zeros(len(rows), np.int64), 0
    if not profile.priorities and not profile.extenders:
        return totals + 1
    check_ready(pod, view, profile)
    at = ManyRows(view, rows, {})
    errors: list[str] = []
    ranges: list[tuple[str, np.ndarray]] = []
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
        ranges.append((priority.name, final))
    if errors:
        raise AttemptError(*errors)
    if profile.checks_scores:
        for name, final in ranges:
            _check_range(name, final, profile)
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
