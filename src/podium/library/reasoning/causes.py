"""The causes of the reasons in a decision, found after it is made.

Only explanations call this; it reads the view as it was when the decision was made and changes
nothing. Rules are asked for the causes on one row (`FilterRule.causes`), as the filters saw it:
with the pods nominated to it where these made the difference. Of rows that a rule says are equal
(`FilterRule.cause_keys`), one is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.causes import (
    Cause,
    CausedRejection,
    NodeNumbers,
    RuleCause,
    ScoreCause,
)
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.rows.rows import ManyRows, OneRow
from podium.engine.rows.trial_one import TrialRow

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.explanation import ExplainedFilter
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import FilterRule, Memo
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.verdicts import Verdict
    from podium.engine.state.view import View


def find_causes(
    view: View, pod: Incoming, profile: Profile, decision: Decision, *, row_by_row: bool = False
) -> tuple[CausedRejection, ...]:
    """What led to each reason of each rejected node, equal causes of one rule together.

    *decision* was made with recording, and the view is still that of the decision. With
    *row_by_row* every row is asked, which is slower and gives the same.
    """
    if decision.error:
        return ()  # the attempt failed as a whole, whatever the verdicts on single nodes
    search = _Search(view, pod, profile, row_by_row=row_by_row)
    codes = decision.codes
    for code in np.bincount(codes[codes > 0]).nonzero()[0].tolist():
        search.explain(code, np.flatnonzero(codes == code).tolist(), decision.examined)
    return search.found(decision.examined)


class _Search:
    """Asks the rules behind verdicts for causes, and puts equal causes together."""

    def __init__(self, view: View, pod: Incoming, profile: Profile, *, row_by_row: bool) -> None:
        self._view, self._pod, self._row_by_row = view, pod, row_by_row
        self._memo: Memo = {}
        self._rules = {rule.name: rule for rule in reversed(profile.predicates)}
        self._row_as_judged = _rows_as_judged(view, pod, profile)
        #: The positions of nodes by rule and cause, and where each was found first.
        self._nodes: dict[tuple[str, Cause], list[int]] = {}
        self._first: dict[tuple[str, Cause], tuple[int, int, int]] = {}

    def explain(self, code: int, positions: list[int], names: Sequence[str]) -> None:
        """Find the causes of one verdict on the nodes at some positions."""
        view, nominated = self._view, self._view.pods.nominated
        alone = [at for at in positions if names[at] in nominated] if nominated else []
        together = [at for at in positions if names[at] not in nominated] if alone else positions
        rows = np.array([view.nodes.row_of[names[at]] for at in together], np.int64)
        for number, part in enumerate(_parts(view.verdicts[code], self._rules, self._pod.cls)):
            keys = None
            if together and not self._row_by_row:
                keys = part.rule.cause_keys(self._pod, ManyRows(view, rows))
            groups: dict[Hashable, list[int]] = {}
            for at, key in zip(together, together if keys is None else keys, strict=True):
                groups.setdefault(key, []).append(at)
            for members in groups.values():
                row = OneRow(view, view.nodes.row_of[names[members[0]]])
                self._ask(part, number, row, members)
            for at in alone:
                self._ask(part, number, self._row_as_judged(names[at], code), [at])

    def _ask(self, part: _Part, number: int, row: OneRow, members: list[int]) -> None:
        for index, cause in enumerate(part.rule.causes(self._pod, row, self._memo)):
            if part.instead:
                cause = msgspec.structs.replace(cause, reason=part.instead)  # noqa: PLW2901
            if cause.reason not in part.reasons:
                continue
            key, place = (part.name, cause), (members[0], number, index)
            known = self._nodes.get(key)
            if known is None:
                self._nodes[key], self._first[key] = list(members), place
            else:
                known += members
                self._first[key] = min(place, self._first[key])

    def found(self, names: Sequence[str]) -> tuple[CausedRejection, ...]:
        """The causes in the order of the nodes, and on one node in that of the rules."""
        order = sorted(self._nodes, key=self._first.__getitem__)
        return tuple(
            CausedRejection(
                predicate,
                cause,  # type: ignore[arg-type]
                tuple(names[at] for at in sorted(self._nodes[predicate, cause])),
            )
            for predicate, cause in order
        )


def find_score_causes(
    view: View, pod: Incoming, profile: Profile, decision: Decision, nodes: Sequence[str]
) -> tuple[ScoreCause, ...]:
    """How each rule that scored is computed, and the numbers behind its scores of some nodes."""
    rows = [(name, OneRow(view, view.nodes.row_of[name])) for name in nodes]
    among = ManyRows(view, view.nodes.rows_named(decision.feasible))
    rules = {each.name: each.priority for each in profile.priorities}
    found = []
    for column in decision.scores:
        rule = rules.get(column.name)
        if rule is not None:
            numbers = [NodeNumbers(name, tuple(rule.numbers(pod, at, among))) for name, at in rows]
            found.append(ScoreCause(rule.name, rule.formula, tuple(numbers)))
    return tuple(found)


def causes_on_row(
    verdict: Verdict, profile: Profile, pod: Incoming, at: OneRow
) -> tuple[RuleCause, ...]:
    """The causes of one verdict on one row."""
    rules = {rule.name: rule for rule in reversed(profile.predicates)}
    return tuple(
        RuleCause(part.name, cause)  # type: ignore[arg-type]
        for part in _parts(verdict, rules, pod.cls)
        for cause in part.rule.causes(pod, at, {})
        if cause.reason in part.reasons
    )


class _Part(NamedTuple):
    """A rule behind a verdict, and what it is asked for."""

    #: The name by which the verdict knows it.
    name: str
    rule: ExplainedFilter
    reasons: frozenset[str]
    #: The reason that replaces its own, if any.
    instead: str = ""


def _parts(verdict: Verdict, rules: dict[str, FilterRule], cls: PodClass) -> Iterator[_Part]:
    """The rules behind a verdict.

    A node that was left out because plugins named the only nodes has one reason for all of them.
    """
    for name, reasons in verdict.by_rule:
        if name in rules:
            for rule in rules[name].cause_parts(cls):
                yield _Part(name, rule, frozenset(reasons))
        elif not name:
            for plugin in verdict.plugins:
                if plugin in rules:
                    yield _Part(plugin, rules[plugin], frozenset(reasons), reasons[0])


def _rows_as_judged(view: View, pod: Incoming, profile: Profile) -> Callable[[str, int], OneRow]:
    """Makes the row of a node as the filters judged it when they gave a verdict."""
    nominated = view.pods.nominated
    taking_part = PreFilter(pod, view, profile).taking_part() if nominated else []

    def row(name: str, code: int) -> OneRow:
        number = view.nodes.row_of[name]
        if name not in nominated:
            return OneRow(view, number)
        crowded = TrialRow(view, number)
        for other in nominees_of(view, name, pod):
            crowded.add(other, nominated=not profile.nominees_count_for_affinity)
        with_nominees, _ = run_filters_on_row(
            pod, crowded, taking_part, check_all=profile.always_check_all
        )
        return crowded if with_nominees == code else OneRow(view, number)

    return row


def nominees_of(view: View, name: str, pod: Incoming) -> list[Resident]:
    """The pods nominated to a node that count for the pod: those of no lower priority."""
    return [
        other
        for other in view.pods.nominated.get(name, ())
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
