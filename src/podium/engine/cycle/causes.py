"""The causes of the reasons in a decision, found after it is made.

Only explanations call this; it reads the view as it was when the decision was made and changes
nothing. Rules are asked row by row (`FilterRule.causes`), on the row as the filters saw it: with
the pods nominated to it where these made the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.causes import (
    Cause,
    CausedRejection,
    NodeNumbers,
    RuleCause,
    ScoreCause,
)
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.rows.rows import OneRow
from podium.engine.rows.trial_one import TrialRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import FilterRule, Memo
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.verdicts import Verdict
    from podium.engine.state.view import View


def find_causes(
    view: View, pod: Incoming, profile: Profile, decision: Decision
) -> tuple[CausedRejection, ...]:
    """What led to each reason of each rejected node, equal causes of one rule together.

    *decision* was made with recording, and the view is still that of the decision.
    """
    memo: Memo = {}
    rules = {rule.name: rule for rule in reversed(profile.predicates)}
    row_as_judged = _rows_as_judged(view, pod, profile)
    asked: dict[int, list[tuple[FilterRule, frozenset[str], str]]] = {}
    found: dict[tuple[str, Cause], list[str]] = {}
    for name, code in zip(decision.examined, decision.codes.tolist(), strict=True):
        if code <= 0:
            continue
        parts = asked.get(code)
        if parts is None:
            parts = asked[code] = list(_parts(view.verdicts[code], rules))
        at = row_as_judged(name, code)
        for rule, reasons, instead in parts:
            for cause in rule.causes(pod, at, memo):
                if instead:
                    cause = msgspec.structs.replace(cause, reason=instead)  # noqa: PLW2901
                if cause.reason in reasons:
                    found.setdefault((rule.name, cause), []).append(name)
    return tuple(
        CausedRejection(predicate, cause, tuple(nodes))  # type: ignore[arg-type]
        for (predicate, cause), nodes in found.items()
    )


def find_score_causes(
    view: View, pod: Incoming, profile: Profile, decision: Decision, nodes: Sequence[str]
) -> tuple[ScoreCause, ...]:
    """How each rule that scored is computed, and the numbers behind its scores of some nodes."""
    rows = [(name, OneRow(view, view.nodes.row_of[name])) for name in nodes]
    rules = {each.name: each.priority for each in profile.priorities}
    found = []
    for column in decision.scores:
        rule = rules.get(column.name)
        if rule is not None:
            numbers = [NodeNumbers(name, tuple(rule.numbers(pod, at))) for name, at in rows]
            found.append(ScoreCause(rule.name, rule.formula, tuple(numbers)))
    return tuple(found)


def causes_on_row(
    verdict: Verdict, profile: Profile, pod: Incoming, at: OneRow
) -> tuple[RuleCause, ...]:
    """The causes of one verdict on one row."""
    rules = {rule.name: rule for rule in reversed(profile.predicates)}
    return tuple(
        RuleCause(rule.name, cause)  # type: ignore[arg-type]
        for rule, reasons, _ in _parts(verdict, rules)
        for cause in rule.causes(pod, at, {})
        if cause.reason in reasons
    )


def _parts(
    verdict: Verdict, rules: dict[str, FilterRule]
) -> Iterator[tuple[FilterRule, frozenset[str], str]]:
    """The rules behind a verdict, the reasons of each, and the reason that replaces its own.

    A node that was left out because plugins named the only nodes has one reason for all of them.
    """
    for name, reasons in verdict.by_rule:
        if name in rules:
            yield rules[name], frozenset(reasons), ""
        elif not name:
            for plugin in verdict.plugins:
                if plugin in rules:
                    yield rules[plugin], frozenset(reasons), reasons[0]


def _rows_as_judged(view: View, pod: Incoming, profile: Profile) -> Callable[[str, int], OneRow]:
    """Makes the row of a node as the filters judged it when they gave a verdict."""
    nominated = view.pods.nominated
    taking_part = PreFilter(pod, view, profile).taking_part() if nominated else []

    def row(name: str, code: int) -> OneRow:
        number = view.nodes.row_of[name]
        if name not in nominated:
            return OneRow(view, number)
        crowded = TrialRow(view, number)
        for other in nominated[name]:
            if other.priority >= pod.priority and other.uid != pod.uid:
                crowded.add(other, nominated=not profile.nominees_count_for_affinity)
        with_nominees, _ = run_filters_on_row(
            pod, crowded, taking_part, check_all=profile.always_check_all
        )
        return crowded if with_nominees == code else OneRow(view, number)

    return row
