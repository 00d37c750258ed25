"""One pod, one decision: filter, score, pick; or who would have to go.

The file to read first. The cycle is a generator: where an extender must be asked it yields the
question and is sent the reply. Without extenders it never yields, and `decide` runs it through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.filtering import Fit, judge, judge_with_nominated, merged_errors
from podium.engine.cycle.first_look import FirstLook
from podium.engine.cycle.nominated_nodes import respect_nominations
from podium.engine.cycle.post_filter import run_post_filters
from podium.engine.cycle.scoring import check_ready, score, total
from podium.engine.framework.decision import Decision, ScoreColumn
from podium.engine.framework.extenders import ask_filters, ask_priorities
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.framework.rule import AttemptError
from podium.engine.rows.many import OneRow
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS, Verdict, histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from podium.engine.cycle.ties import Ties
    from podium.engine.fast.class_answers import Ranking, Rankings
    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

NO_NODES = "no nodes available to schedule pods"


def unheard(step: str) -> None:
    """Nobody times the steps."""


@dataclass(slots=True)
class Attempt:
    """The inputs of one decision besides the cluster: the pod, the rules, the order, the ties."""

    pod: Incoming
    profile: Profile
    #: Rows in the order they are looked at; may name a row twice, or not all of them.
    order: np.ndarray
    ties: Ties
    #: Keep everything that led to the decision.
    recording: bool = False
    #: When recording, score a single feasible node too, although nothing depends on it.
    score_single: bool = False
    #: What earlier pods of the same class have been told.
    rankings: Rankings | None = None
    #: Told the name of each step when it is done; whoever listens has a clock.
    mark: Callable[[str], None] = unheard


def decide(view: View, attempt: Attempt) -> Decision:
    """Run the cycle with nobody to ask."""
    steps = cycle(view, attempt)
    try:
        question = next(steps)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise RuntimeError(f"nobody can answer {question!r} here; run the cycle with extenders")


def cycle(view: View, attempt: Attempt) -> Generator[Any, Any, Decision]:
    """Choose a node for the pod, or say why none fits and whether evicting pods would help."""
    pod, profile = attempt.pod, attempt.profile
    decision = Decision(pod.key, pod.uid, profile.name, nodes=len(view.order))
    decision.verdicts = view.verdicts
    for gate in profile.gates:
        decision.held = gate.hold(pod)
        if decision.held is not None:
            return decision
    try:
        _check(view, attempt)
        look = FirstLook(pod, view, profile)
        decision.refused = look.refused
        attempt.mark("Basic checks done")
        feasible = np.zeros(0, np.int64)
        if look.refused is None:
            ranking = _ranking(attempt, look)
            if ranking is not None and _pick_ranked(view, attempt, ranking, decision):
                return decision
            feasible = yield from _search(view, attempt, look, ranking, decision)
            attempt.mark("Computing predicates done")
            if len(feasible):
                yield from _pick(view, attempt, feasible, decision, ranking)
        if decision.node is None:
            yield from _after_filter(view, attempt, look, decision)
            attempt.mark("Preemption done")
    except AttemptError as error:
        decision.error = str(error)
    return decision


def _ranking(attempt: Attempt, look: FirstLook) -> Ranking | None:
    """What earlier pods of the class were told, where that can be used."""
    if attempt.rankings is None or attempt.recording or look.only is not None:
        return None
    return attempt.rankings.of(attempt.pod)


def _search(
    view: View, attempt: Attempt, look: FirstLook, ranking: Ranking | None, decision: Decision
) -> Generator[Any, Any, np.ndarray]:
    """The feasible rows: the promised node if it is one, else all that pass."""
    pod, extenders = attempt.pod, attempt.profile.extenders
    promised, code = _promised(view, attempt, look)
    if promised is not None and code == FITS:
        alone = yield from ask_filters(pod, view, extenders, np.array([promised]), decision)
        if len(alone):
            decision.nominated = view.names[int(alone[0])]
            decision.feasible_count = 1
            return alone
    fit = _feasible(view, attempt, look, ranking)
    if look.only is not None:
        _restrict(view, attempt.order, look, fit)
        if promised is not None and code > 0:
            _restore(view, attempt.order, look, fit, (promised, code))
    feasible = _sample(view, attempt, look, fit, decision)
    return (yield from ask_filters(pod, view, extenders, feasible, decision))


def _promised(view: View, attempt: Attempt, look: FirstLook) -> tuple[int | None, int]:
    """The row promised to the pod, if it is tried first, and its verdict."""
    pod, profile = attempt.pod, attempt.profile
    row = view.row_of.get(pod.pod.status.nominated_node_name)
    if not profile.nominated_first or row is None or not view.known[row]:
        return None, FITS
    trial = TrialRow(view, row)
    return row, judge_with_nominated(
        pod, trial, look.active(), nominees_count_for_affinity=profile.nominees_count_for_affinity
    )


def _outside(view: View, names: Iterable[str]) -> int:
    """The verdict of rows that are not in question."""
    plugins = tuple(sorted(set(names)))
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
    return view.verdicts.code(Verdict("", (text,), curable=False, plugins=plugins))


def _restore(
    view: View, order: np.ndarray, look: FirstLook, fit: Fit, told: tuple[int, int]
) -> None:
    """The promised row was tried although it is not in question: it keeps what it was told.

    Whoever turned it down is named along with those that named nodes.
    """
    row, code = told
    before = _outside(view, look.naming)
    after = _outside(view, [*look.naming, view.verdicts[code].predicate])
    fit.codes[fit.codes == before] = after
    if look.only is None or view.names[row] not in look.only:
        fit.codes[order == row] = code


def _restrict(view: View, order: np.ndarray, look: FirstLook, fit: Fit) -> None:
    """Rows that are not in question carry one verdict, whatever the predicates said."""
    assert look.only is not None
    code = _outside(view, look.naming)
    inside = np.isin(order, [view.row_of[name] for name in look.only if name in view.row_of])
    fit.codes[~inside] = code
    fit.errors = {i: text for i, text in fit.errors.items() if inside[i]}


def _after_filter(
    view: View, attempt: Attempt, look: FirstLook, decision: Decision
) -> Generator[Any, Any, None]:
    """Run the post-filters of the profile, if it has any."""
    pod, profile = attempt.pod, attempt.profile
    if profile.post_filters:
        potential = _potential(view, attempt, decision)
        failed = FailedSearch(
            pod,
            view,
            look.active(),
            potential,
            prepared=frozenset(look.prepared),
            extenders=profile.extenders,
            min_batch_rows=profile.min_batch_rows,
        )
        yield from run_post_filters(profile.post_filters, failed, decision)


def _check(view: View, attempt: Attempt) -> None:
    for check in attempt.profile.checks:
        if text := check(attempt.pod, view):
            raise AttemptError(text)
    if not len(view.order):
        raise AttemptError(NO_NODES)


def _pick_ranked(view: View, attempt: Attempt, ranking: Ranking, decision: Decision) -> bool:
    """Take one of the best rows from what is known of the class, where that is all there is."""
    pod, profile, order = attempt.pod, attempt.profile, attempt.order
    nodes = len(view.order)
    if view.nominated or profile.extenders or len(order) != nodes or not view.names_once(order):
        return False
    if _wanted(nodes, profile) < nodes:
        return False
    if profile.nominated_first and pod.pod.status.nominated_node_name:
        return False
    index = ranking.indexed(pod, order)
    rows = order if index is not None else ranking.feasible(pod, order)
    if rows is None or not (count := len(rows) if index is None else len(index)):
        return False
    # Before anything is scored: an error there does not undo that the nodes were looked at.
    decision.consumed, decision.feasible_count = nodes, count
    if rejections := ranking.rejections():
        decision.histogram = rejections.copy()
    attempt.mark("Computing predicates done")
    best: Sequence[int] | np.ndarray
    if count > 1:
        check_ready(pod, view, profile)
    if index is not None:
        best = index.best()
    elif count == 1:
        best = [0]
    else:
        totals = ranking.totals(pod, rows)
        best = np.flatnonzero(totals == totals.max())
    attempt.mark("Prioritizing done")
    chosen = int(rows[best[0]]) if count == 1 else _choose(attempt, decision, rows, best)
    _place(view, attempt, decision, chosen)
    return True


def _choose(attempt: Attempt, decision: Decision, rows: np.ndarray, best: Any) -> int:
    """One of the best."""
    decision.cursor, decision.tied = attempt.ties.cursor, len(best)
    return int(rows[best[attempt.ties.choose(len(best))]])


def _place(view: View, attempt: Attempt, decision: Decision, row: int) -> None:
    decision.node = view.names[row]
    if attempt.pod.cls.volumes:
        # Nothing is promised unless a predicate looked at the claims.
        planners = (getattr(predicate, "plan", None) for predicate in attempt.profile.predicates)
        plan = next(filter(None, planners), None)
        decision.volumes = plan(attempt.pod, OneRow(view, row)) if plan is not None else None


def _feasible(view: View, attempt: Attempt, look: FirstLook, ranking: Ranking | None) -> Fit:
    pod, profile, order = attempt.pod, attempt.profile, attempt.order
    active = look.active() if ranking is None or view.nominated else profile.predicates
    if ranking is not None:
        fit = ranking.fit(pod, order)
    else:
        fit = judge(pod, view, active, order, check_all=profile.always_check_all)
    if view.nominated:
        respect_nominations(
            pod,
            view,
            active,
            order,
            fit,
            check_all=profile.always_check_all,
            nominees_count_for_affinity=profile.nominees_count_for_affinity,
            min_batch_rows=profile.min_batch_rows,
        )
    return fit


def wanted_nodes(nodes: int, percentage: int, *, adaptive: bool = False) -> int:
    """How many feasible nodes are enough."""
    if adaptive and percentage == 0:
        percentage = max(5, 50 - nodes // 125)
    if nodes < 100 or not 0 < percentage < 100:
        return nodes
    return max(nodes * percentage // 100, 100)


def _wanted(nodes: int, profile: Profile) -> int:
    percentage = profile.percentage_of_nodes_to_score
    if profile.first_if_equal and not _compares(profile):
        return 1
    return wanted_nodes(nodes, percentage, adaptive=profile.adaptive_sampling)


def _compares(profile: Profile) -> bool:
    asks = any(each.filter_verb or each.prioritize_verb for each in profile.extenders)
    return asks or bool(profile.priorities)


def _sample(
    view: View, attempt: Attempt, look: FirstLook, fit: Fit, decision: Decision
) -> np.ndarray:
    """The feasible rows, cut after the wanted number; what lies beyond was never looked at."""
    order, codes = attempt.order, fit.codes
    fits = np.flatnonzero(codes == FITS)
    nodes = len(view.order) if look.only is None else len(look.only & view.row_of.keys())
    want = _wanted(nodes, attempt.profile)
    seen = len(order)
    if len(fits) > want:
        # The search stops at the first feasible node too many, which is dropped again.
        seen = int(fits[want])
        decision.consumed, decision.dropped = seen + 1, True
        fits = fits[:want]
    else:
        decision.consumed = seen
    if look.only is not None:
        inside = np.isin(order[:seen], [view.row_of[n] for n in look.only if n in view.row_of])
        decision.consumed = int(inside.sum()) + decision.dropped
    failed = np.sort(np.fromiter(fit.errors, np.int64, len(fit.errors)))
    errors = list(map(fit.errors.__getitem__, failed[failed < seen].tolist()))
    if errors:
        raise AttemptError(merged_errors(errors) if attempt.profile.all_errors else errors[0])
    decision.feasible_count = len(fits)
    decision.codes = codes[:seen]
    told = decision.codes
    if not view.names_once(order):
        told = told[np.unique(order[:seen], return_index=True)[1]]
    if len(fits) < seen:
        decision.histogram = histogram(told)
    if attempt.recording:
        decision.examined = [view.names[row] for row in order[:seen].tolist()]
    return order if len(fits) == len(order) else order[fits]


def _pick(
    view: View,
    attempt: Attempt,
    feasible: np.ndarray,
    decision: Decision,
    ranking: Ranking | None,
) -> Generator[Any, Any, None]:
    if attempt.recording:
        decision.feasible = [view.names[row] for row in feasible.tolist()]
    if len(feasible) == 1 and not (attempt.recording and attempt.score_single):
        chosen = int(feasible[0])
    else:
        columns: tuple[ScoreColumn, ...] = ()
        if ranking is not None and (attempt.profile.priorities or attempt.profile.extenders):
            check_ready(attempt.pod, view, attempt.profile)
            totals = ranking.totals(attempt.pod, feasible)
        elif attempt.recording:
            columns, totals = score(attempt.pod, view, attempt.profile, feasible)
        else:
            totals = total(attempt.pod, view, attempt.profile, feasible)
        totals, more = yield from ask_priorities(
            attempt.pod,
            view,
            attempt.profile.extenders,
            feasible,
            totals,
            max_score=attempt.profile.max_score,
        )
        attempt.mark("Prioritizing done")
        best = np.flatnonzero(totals == totals.max())
        chosen = _choose(attempt, decision, feasible, best)
        if attempt.recording:
            decision.scores, decision.totals = (*columns, *more), totals
            decision.best = [decision.feasible[i] for i in best.tolist()]
    _place(view, attempt, decision, chosen)


def _potential(view: View, attempt: Attempt, decision: Decision) -> np.ndarray:
    """Rows where evicting pods could help: all that were not turned down for good."""
    if decision.refused is not None:
        return np.zeros(0, np.int64)
    curable = np.array([verdict.curable for verdict in view.verdicts], np.bool_)
    hopeless = np.zeros(view.capacity, np.bool_)
    seen = attempt.order[: len(decision.codes)]
    hopeless[seen[~curable[decision.codes]]] = True
    hopeless[[view.row_of[name] for name in decision.extender_hopeless]] = True
    return view.order[~hopeless[view.order]]
