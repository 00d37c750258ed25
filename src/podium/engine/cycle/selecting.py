"""The Score stage and the choice of the node: the best feasible row, ties by the caller's rule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.extenders import ask_priorities
from podium.engine.cycle.searching import wanted_by
from podium.engine.framework.plan import plan_of
from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.scoring import run_scores
from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from podium.engine.cycle.attempt import Attempt
    from podium.engine.cycle.ties import Places
    from podium.engine.fast.class_answers import ClassAnswers
    from podium.engine.framework.decision import Decision, ScoreColumn
    from podium.engine.framework.plan import RulePlan
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def select_from_answers(
    view: View, attempt: Attempt, answers: ClassAnswers, decision: Decision
) -> int | None:
    """One of the best rows by the answers kept for the pod's class; None: the stages must run.

    Asked where the attempt `covers_all_rows`.
    """
    pod, order = attempt.pod, attempt.order
    groups = answers.grouped(pod, order)
    if groups is not None:
        rows, count = order, groups.feasible_rows
    else:
        found = answers.feasible(order) if view.nodes.names_once(order) else None
        if found is None or not len(found):
            return None
        rows, count = found, len(found)
    decision.consumed, decision.feasible_count = len(order), count
    rejections = answers.rows.columns.rejections()
    for code, number in groups.rejections.items() if groups is not None else ():
        rejections = {**rejections, code: rejections.get(code, 0) + number}
    if rejections:
        decision.histogram = rejections
    attempt.mark("Computing predicates done")
    # An error from here on does not undo that the nodes were looked at.
    if count > 1 and attempt.profile.pre_scores:
        _check_pre_scores(view, attempt, answers.plan)
    best = answers.best_of_groups(pod, groups) if groups is not None else None
    if best is None:
        found = answers.feasible(order)
        if found is None:
            return None
        rows, best = found, _best_of(pod, answers, found)
    attempt.mark("Prioritizing done")
    if attempt.evidence is not None:
        attempt.evidence.note_answers(pod, order, answers)
    places = partial(answers.places, pod, order) if len(rows) != count else None
    return _choose(attempt, decision, rows, best, places, alone=count == 1)


def covers_all_rows(view: View, attempt: Attempt) -> bool:
    """Whether all nodes are looked at once, and nothing but rules is asked about them."""
    pod, profile, order = attempt.pod, attempt.profile, attempt.order
    nodes = len(view.nodes.order)
    if view.pods.nominated or profile.extenders or len(order) != nodes:
        return False
    if not profile.wants_all_nodes and wanted_by(profile, nodes) < nodes:
        return False
    return not (profile.nominated_first and pod.pod.status.nominated_node_name)


def _best_of(pod: Incoming, answers: ClassAnswers, rows: np.ndarray) -> Sequence[int] | np.ndarray:
    """The positions of the best feasible rows; a single one is not scored."""
    if len(rows) == 1:
        return [0]
    totals = answers.totals(pod, rows)
    return np.flatnonzero(totals == totals.max())


def select_node(
    view: View,
    attempt: Attempt,
    feasible: np.ndarray,
    answers: ClassAnswers | None,
    decision: Decision,
) -> Generator[Any, Any, int]:
    """Score the feasible rows, add the scores of extenders, and choose one of the best."""
    if attempt.recording:
        decision.feasible = [view.nodes.names[row] for row in feasible.tolist()]
    if len(feasible) == 1 and not (attempt.recording and attempt.score_single):
        return int(feasible[0])
    columns: list[ScoreColumn] = []
    totals = _totals(view, attempt, feasible, answers, columns)
    more: tuple[ScoreColumn, ...] = ()
    if attempt.profile.extenders:
        totals, more = yield from ask_priorities(view, attempt, feasible, totals)
    if attempt.evidence is not None:
        attempt.evidence.note_totals(feasible, totals)
    attempt.mark("Prioritizing done")
    best = np.flatnonzero(totals == totals.max())
    if attempt.recording:
        decision.scores, decision.totals = (*columns, *more), totals
        decision.best = [decision.feasible[i] for i in best.tolist()]
    return _choose(attempt, decision, feasible, best)


def _totals(
    view: View,
    attempt: Attempt,
    feasible: np.ndarray,
    answers: ClassAnswers | None,
    columns: list[ScoreColumn],
) -> np.ndarray:
    """The weighted sum of each feasible row; the scores behind it when recording."""
    pod, profile = attempt.pod, attempt.profile
    if not profile.priorities and not profile.extenders:
        return np.ones(len(feasible), np.int64)
    _check_pre_scores(view, attempt, plan_of(pod.cls, profile))
    if answers is not None:
        return answers.totals(pod, feasible)
    return run_scores(
        pod,
        ManyRows(view, feasible, {}),
        profile.priorities,
        profile,
        columns=columns if attempt.recording else None,
    )


def _check_pre_scores(view: View, attempt: Attempt, plan: RulePlan) -> None:
    """Fail if some rule cannot score pods of this class."""
    if fault := plan.scoring_fault(attempt.pod, view, attempt.profile):
        raise AttemptError(fault)


def _choose(
    attempt: Attempt,
    decision: Decision,
    rows: np.ndarray,
    best: Sequence[int] | np.ndarray,
    places: Places | None = None,
    *,
    alone: bool = False,
) -> int:
    """One of the best rows, by the rule for ties; there is no choice where a row is *alone*.

    *places* gives their places among the feasible rows, if *rows* are others.
    """
    chosen = 0
    if not alone:
        if attempt.evidence is not None:
            attempt.evidence.note_best(rows, best)
        decision.cursor, decision.tied = attempt.ties.cursor, len(best)
        chosen = attempt.ties.choose(best, places)
    row: int = rows.item(best[chosen])
    return row
