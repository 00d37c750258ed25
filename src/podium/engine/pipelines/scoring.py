"""The score pipeline: how good feasible rows are.

The only place that runs score rules: all of them over the feasible rows, normalized, checked and
summed up; or those that need one row at a time, for the answers kept per pod class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.decision import ScoreColumn
from podium.engine.framework.rule import AttemptError
from podium.engine.rows.row_groups import Grouping, grouped
from podium.engine.rows.rows import K, ManyRows

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Everywhere, ScoreRule
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.rows.rows import Flags, Ints, Rows
    from podium.engine.state.pod_class import Incoming

#: Scores of more groups of rows than this are found in arrays.
MOST_IN_PLAIN_NUMBERS = 64


def run_scores(
    pod: Incoming,
    at: ManyRows,
    weighted: Sequence[Weighted],
    profile: Profile,
    *,
    columns: list[ScoreColumn] | None = None,
    known: Sequence[Everywhere | None] | None = None,
) -> np.ndarray:
    """The weighted sums of final scores over the feasible rows.

    `weighted` are some or all of the score rules of the profile. A score outside the range of the
    profile fails the attempt. What each rule gave is added to `columns`, if a list is given.
    `known` holds what the rules answered to `everywhere` in this decision, if they were asked.
    """
    highest = profile.highest_score
    totals: np.ndarray | None = None
    constant = 0
    errors: list[str] = []
    out_of_range = ""
    for number, each in enumerate(weighted):
        rule, weight = each.priority, each.weight
        try:
            same = known[number] if known is not None else rule.everywhere(pod, at.view)
            if same is None:
                raw, final = _scored(rule, pod, at, profile.tuning.min_reduction)
        except AttemptError as error:
            errors += error.args
            continue
        if same is None:
            totals = final * weight if totals is None else totals + final * weight
            if columns is not None:
                columns.append(ScoreColumn(rule.name, weight, raw, final))
        else:
            constant += same.score * weight
            if columns is not None and same.shown:
                columns.append(_same_column(each, same.score, len(at)))
        if highest is not None and not out_of_range:
            given = final if same is None else same.score
            out_of_range = _out_of_range(rule.name, given, highest)
    if errors or out_of_range:
        raise AttemptError(*(errors or [out_of_range]))
    return _shifted(totals, constant, len(at))


def run_scores_of_few(
    pod: Incoming, groups: RowGroups, count: int, weighted: Sequence[Weighted], profile: Profile
) -> list[int] | None:
    """The same sums of a few groups of rows in plain numbers; None if `run_scores` has to be asked.

    *count* is how many feasible rows the groups have.
    """
    if len(groups.numbers) > MOST_IN_PLAIN_NUMBERS:
        return None
    highest = profile.highest_score
    totals = [0] * len(groups.numbers)
    for each in weighted:
        found = each.priority.of_few(pod, groups, count)
        if found is None or (highest is not None and (min(found) < 0 or max(found) > highest)):
            return None
        weight = each.weight
        totals = [total + score * weight for total, score in zip(totals, found, strict=True)]
    return totals


def _shifted(totals: np.ndarray | None, constant: int, size: int) -> np.ndarray:
    """The sums of scores that differ between rows, if there are any, and of those that do not."""
    if totals is None:
        return np.full(size, constant, np.int64)
    if constant:
        totals += constant
    return totals


def run_row_scores(
    pod: Incoming, at: Rows[K], weighted: Sequence[Weighted], *, highest: int | None
) -> tuple[Ints[K], Flags[K] | bool]:
    """Sums of rules that neither normalize nor look beyond the row, and where one is out of range.

    Such sums are kept; a row out of range makes the whole attempt fail, which `run_scores` words.
    One plain False says that none is.
    """
    total: Ints[K] | None = None
    wrong: Flags[K] | bool = False
    for each in weighted:
        score = each.priority.score(pod, at)
        given = score if each.weight == 1 else score * each.weight
        total = given if total is None else total + given
        if highest is not None and at.any(out := at.outside(score, highest)):
            wrong = out if wrong is False else out | wrong
    return at.full(0) if total is None else total, wrong


def _scored(
    rule: ScoreRule, pod: Incoming, at: ManyRows, min_reduction: int
) -> tuple[np.ndarray, np.ndarray]:
    """Raw and final scores of one rule."""
    groups, of_row = _groups(rule, pod, at, min_reduction)
    groups.errors = {}
    raw = _column(rule.score(pod, groups), len(groups))
    final = raw
    if rule.normalizes:
        final = _column(rule.normalize(pod, groups, raw), len(groups))
    return (raw, final) if of_row is None else (raw[of_row], final[of_row])


def _column(scores: object, size: int) -> np.ndarray:
    """Scores as an array with an entry per row, also where a rule gives one number for all."""
    column = np.asarray(scores, np.int64)
    return column if column.shape == (size,) else np.broadcast_to(column, (size,))


def _groups(
    rule: ScoreRule, pod: Incoming, at: ManyRows, min_reduction: int
) -> tuple[ManyRows, np.ndarray | None]:
    """One row of each group of rows that the rule cannot tell apart, and the group of each row.

    Where only topology domains count, three zones stand for five thousand nodes. Whatever a rule
    computes over all feasible rows (the highest, how many domains there are) is the same over one
    row of each group. All rows as they are, if grouping does not reduce them enough.
    """
    if at.memo is None or len(at) < min_reduction:
        return at, None
    keys = rule.group_keys(pod, at.view)
    if not keys or rule.group_tallies(pod, at.view):
        return at, None
    first, of_row = at.remembered(("groups", keys), lambda: grouped(at, Grouping(keys)))
    if len(first) * min_reduction > len(at):
        return at, None
    memo: dict[Hashable, Any] = at.remembered(("facts of groups", keys), dict)
    return ManyRows(at.view, at.index[first], memo), of_row


def _same_column(each: Weighted, score: int, size: int) -> ScoreColumn:
    """The column of a rule that gives every row the same score."""
    same = np.full(size, score, np.int64)
    raw = np.zeros(size, np.int64) if each.priority.normalizes else same
    return ScoreColumn(each.name, each.weight, raw, same, uniform=True)


def _out_of_range(name: str, scores: np.ndarray | int, highest: int) -> str:
    """The error of a rule with a score outside 0 to `highest`; empty if there is none."""
    if isinstance(scores, int):
        wrong = [] if 0 <= scores <= highest else [scores]
    elif not len(scores) or scores.view(np.uint64).max() <= highest:
        return ""  # negative numbers are very large ones when they are read without a sign
    else:
        wrong = scores[(scores < 0) | (scores > highest)].tolist()
    if not wrong:
        return ""
    return (
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an '
        f"invalid score {wrong[0]}, it should in the range of [0, {highest}] after normalizing"
    )
