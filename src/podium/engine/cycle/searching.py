"""The Filter stage: the feasible rows of a pod.

The node nominated to the pod comes first, if the profile says so; otherwise all rows are filtered,
those that pods are nominated to once more with these pods on them, then sampled in node order, then
given to the extenders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.extenders import ask_filters
from podium.engine.cycle.nominated_nodes import respect_nominations
from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.filtering import (
    active,
    merged_errors,
    run_filters,
    run_filters_on_row,
    run_filters_with_nominated,
)
from podium.engine.rows.rows import ManyRows, OneRow
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS, Verdict, histogram

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from podium.engine.cycle.attempt import Attempt
    from podium.engine.cycle.pre_filter import PreFilter
    from podium.engine.fast.class_answers import ClassAnswers
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.pipelines.filtering import Fit
    from podium.engine.state.view import View

NO_PLACES = np.zeros(0, np.int64)


def find_feasible(
    view: View,
    attempt: Attempt,
    pre_filter: PreFilter,
    answers: ClassAnswers | None,
    decision: Decision,
) -> Generator[Any, Any, np.ndarray]:
    """The feasible rows: the nominated node alone if it fits, else all that pass."""
    nominated, code = _nominated_row(view, attempt, pre_filter)
    if nominated is not None and code == FITS:
        alone: np.ndarray = yield from _left_by_extenders(
            view, attempt, np.array([nominated]), decision
        )
        if len(alone):
            decision.nominated = view.nodes.names[int(alone[0])]
            decision.feasible_count = 1
            return alone
    named = _only_named_row(view, attempt, pre_filter)
    if named is not None and _fits_alone(view, attempt, pre_filter, named):
        decision.consumed = decision.feasible_count = 1
        if len(attempt.order) > 1:
            others = _excluded(view, pre_filter.naming)
            decision.histogram = {others: len(attempt.order) - 1}
        return (yield from _left_by_extenders(view, attempt, np.array([named]), decision))
    fit = _filtered(view, attempt, pre_filter, answers)
    if pre_filter.only is not None:
        _exclude_unnamed(view, attempt.order, pre_filter, fit)
        if nominated is not None and code > 0:
            _keep_verdict(view, attempt.order, pre_filter, fit, (nominated, code))
    feasible = _sample(view, attempt, fit, pre_filter.only, decision)
    if nominated is not None and code > FITS:
        decision.consumed += not _was_counted(view, attempt, pre_filter, decision, nominated)
    return (yield from _left_by_extenders(view, attempt, feasible, decision))


def _was_counted(
    view: View, attempt: Attempt, pre_filter: PreFilter, decision: Decision, row: int
) -> bool:
    """Whether a node was looked at once more; if not, its rejection as nominated node counts."""
    named = pre_filter.only is None or view.nodes.names[row] in pre_filter.only
    return named and row in attempt.order[: len(decision.codes)]


def _left_by_extenders(
    view: View, attempt: Attempt, rows: np.ndarray, decision: Decision
) -> Generator[Any, Any, np.ndarray]:
    """Those of the rows that all extenders leave."""
    if not attempt.profile.extenders:
        return rows
    return (yield from ask_filters(view, attempt, rows, decision))


def _nominated_row(view: View, attempt: Attempt, pre_filter: PreFilter) -> tuple[int | None, int]:
    """The row nominated to the pod, if the profile tries it first, and its verdict."""
    pod, profile = attempt.pod, attempt.profile
    row = view.nodes.row_of.get(pod.pod.status.nominated_node_name)
    if not profile.nominated_first or row is None or not view.nodes.known[row]:
        return None, FITS
    code = run_filters_with_nominated(
        pod,
        TrialRow(view, row),
        pre_filter.taking_part(),
        nominees_count_for_affinity=profile.nominees_count_for_affinity,
    )
    return row, code


def _only_named_row(view: View, attempt: Attempt, pre_filter: PreFilter) -> int | None:
    """The row of the only node in question, where nothing has to be kept of the other rows."""
    only = pre_filter.only
    if only is None or len(only) != 1 or attempt.recording or attempt.profile.always_check_all:
        return None
    [name] = only
    row = view.nodes.row_of.get(name)
    if row is None or not view.nodes.known[row] or name in view.pods.nominated:
        return None
    order = attempt.order
    whole = len(order) == len(view.nodes.order) and view.nodes.names_once(order)
    return row if whole else None


def _fits_alone(view: View, attempt: Attempt, pre_filter: PreFilter, row: int) -> bool:
    """Whether the pod fits on a row; if not, all rows are filtered to say why."""
    rules = active(attempt.pod, view, pre_filter.plan.filters)
    at = OneRow(view, row)
    return run_filters_on_row(attempt.pod, at, rules)[0] == FITS


def _filtered(
    view: View, attempt: Attempt, pre_filter: PreFilter, answers: ClassAnswers | None
) -> Fit:
    """The verdict of every row in node order."""
    pod, profile, order = attempt.pod, attempt.profile, attempt.order
    if answers is not None:
        fit = answers.fit(pod, order)
    else:
        rules = active(pod, view, pre_filter.plan.filters)
        fit = run_filters(pod, ManyRows(view, order), rules, check_all=profile.always_check_all)
    if view.pods.nominated:
        fit.rejections = None
        respect_nominations(
            pod,
            view,
            pre_filter.taking_part(),
            order,
            fit,
            check_all=profile.always_check_all,
            nominees_count_for_affinity=profile.nominees_count_for_affinity,
            min_batch_rows=profile.tuning.min_batch_rows,
        )
    return fit


def _excluded(view: View, names: Iterable[str]) -> int:
    """The verdict of nodes that plugins left out when they named the only nodes."""
    plugins = tuple(sorted(set(names)))
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
    return view.verdicts.code(Verdict("", (text,), curable=False, plugins=plugins))


def _exclude_unnamed(view: View, order: np.ndarray, pre_filter: PreFilter, fit: Fit) -> None:
    """Give the rows that plugins left out one verdict, whatever the filters said."""
    assert pre_filter.only is not None
    rows = [view.nodes.row_of[name] for name in pre_filter.only if name in view.nodes.row_of]
    inside = np.isin(order, rows)
    fit.codes[~inside] = _excluded(view, pre_filter.naming)
    fit.errors = {i: text for i, text in fit.errors.items() if inside[i]}


def _keep_verdict(
    view: View, order: np.ndarray, pre_filter: PreFilter, fit: Fit, nominated: tuple[int, int]
) -> None:
    """The nominated row was filtered although plugins left it out: it keeps its verdict.

    The plugin that rejected it is named along with those that named nodes.
    """
    row, code = nominated
    before = _excluded(view, pre_filter.naming)
    after = _excluded(view, [*pre_filter.naming, view.verdicts[code].predicate])
    fit.codes[fit.codes == before] = after
    if pre_filter.only is None or view.nodes.names[row] not in pre_filter.only:
        fit.codes[order == row] = code


def wanted_nodes(nodes: int, percentage: int, *, adaptive: bool = False) -> int:
    """How many feasible nodes are enough.

    `adaptive`: 0 percent stands for a share that shrinks as the cluster grows.
    """
    if adaptive and percentage == 0:
        percentage = max(5, 50 - nodes // 125)
    if nodes < 100 or not 0 < percentage < 100:
        return nodes
    return max(nodes * percentage // 100, 100)


def wanted_by(profile: Profile, nodes: int) -> int:
    """How many feasible nodes are enough for a profile."""
    if profile.wants_all_nodes:
        return nodes
    if profile.first_if_equal and not profile.compares_nodes:
        return 1
    percentage = profile.percentage_of_nodes_to_score
    return wanted_nodes(nodes, percentage, adaptive=profile.adaptive_sampling)


def _sample(
    view: View, attempt: Attempt, fit: Fit, only: frozenset[str] | None, decision: Decision
) -> np.ndarray:
    """The feasible rows, up to the wanted number, in node order.

    Verdicts and errors of rows beyond that do not count: these were never looked at. What was
    looked at is noted in the decision.
    """
    order, codes = attempt.order, fit.codes
    names_once = view.nodes.names_once(order)
    counted = fit.rejections if names_once else None
    fits = NO_PLACES
    if counted is None or sum(counted.values()) < len(order):
        fits = (codes == FITS).nonzero()[0]
    nodes = len(view.nodes.order) if only is None else len(only & view.nodes.row_of.keys())
    want = wanted_by(attempt.profile, nodes)
    seen = len(order)
    if len(fits) > want:
        # The search stops at the first feasible node too many, which is dropped again.
        seen = int(fits[want])
        decision.consumed, decision.dropped = seen + 1, True
        fits = fits[:want]
    else:
        decision.consumed = seen
    if only is not None:
        inside = np.isin(
            order[:seen], [view.nodes.row_of[n] for n in only if n in view.nodes.row_of]
        )
        decision.consumed = int(inside.sum()) + decision.dropped
    failed = np.sort(np.fromiter(fit.errors, np.int64, len(fit.errors)))
    errors = list(map(fit.errors.__getitem__, failed[failed < seen].tolist()))
    if errors:
        text = merged_errors(errors) if attempt.profile.all_errors else errors[0]
        places = failed[failed < seen].tolist()
        rules, position = attempt.profile.predicates, int(fit.positions[places[0]])
        plugin = rules[position].name if position < len(rules) else ""
        named: dict[str, str] = {}
        if attempt.recording:
            names = (view.nodes.names[row] for row in order[places].tolist())
            named = dict(zip(names, errors, strict=True))
        raise AttemptError(text, plugin=plugin, nodes=named)
    decision.feasible_count = len(fits)
    decision.codes = codes[:seen]
    if len(fits) < seen:
        decision.histogram = _rejections(
            order[:seen],
            decision.codes,
            counted if seen == len(order) else None,
            names_once=names_once,
        )
    if attempt.recording:
        decision.examined = [view.nodes.names[row] for row in order[:seen].tolist()]
    return order if len(fits) == len(order) else order[fits]


def _rejections(
    rows: np.ndarray, codes: np.ndarray, counted: Mapping[int, int] | None, *, names_once: bool
) -> dict[int, int]:
    """How many of the rows were rejected with which verdict, each row once, in order of codes."""
    if counted is not None:
        return dict(sorted(counted.items()))
    return histogram(codes if names_once else codes[np.unique(rows, return_index=True)[1]])


def potential_rows(view: View, attempt: Attempt, decision: Decision) -> np.ndarray:
    """Rows where evicting pods could help: all that were not rejected for good."""
    if decision.refused is not None:
        return np.zeros(0, np.int64)
    if not decision.extender_hopeless:
        given = map(view.verdicts.__getitem__, decision.histogram)
        if all(verdict.curable for verdict in given):
            return view.nodes.order
    curable = np.array([verdict.curable for verdict in view.verdicts], np.bool_)
    hopeless = np.zeros(view.nodes.capacity, np.bool_)
    seen = attempt.order[: len(decision.codes)]
    hopeless[seen[~curable[decision.codes]]] = True
    hopeless[[view.nodes.row_of[name] for name in decision.extender_hopeless]] = True
    return view.nodes.order[~hopeless[view.nodes.order]]
