"""A decision step by step, found after it is made.

Only explanations call this; it reads the view as it was when the decision was made and changes
nothing. What the filters did is in the verdicts of the decision. Nodes with nominated pods are
filtered again, with these pods and without, and scores are computed again on rows whose numbers
know their arithmetic (`engine.rows.written`): by the same rules, through the same pipelines.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.extenders import extender_scale
from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.rule import AttemptError
from podium.engine.framework.trace import (
    CriterionStep,
    DecisionTrace,
    EvictionWalk,
    FilterAnswer,
    FilterStep,
    NodePasses,
    NodeSum,
    NominatedPod,
    Prepared,
    ScoreStep,
    Selection,
    TriedPod,
    Working,
)
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.preemption.criteria import ListedCandidates, narrowed
from podium.engine.preemption.victim_search import EvictingPostFilter
from podium.engine.rows.rows import ManyRows
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rows.written import WrittenRow, text_of, written
from podium.engine.state.verdicts import FITS
from podium.library.reasoning.causes import nominees_of
from podium.library.reasoning.preemption_causes import PutBack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.engine.framework.decision import Decision, ScoreColumn
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Positioned, ScoreRule
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

#: The name of the step in which rules named the only nodes in question.
NAMED_NODES = "PreFilter"
#: The name of the step in which extenders are asked.
EXTENDERS = "extenders"
#: For how many nodes both passes are shown, and for how many candidates the search for victims.
MOST_PASSES = 20
MOST_CANDIDATES = 10


def find_trace(
    view: View,
    pod: Incoming,
    profile: Profile,
    decision: Decision,
    scored: Sequence[str],
    *,
    asked: str | None = None,
) -> DecisionTrace:
    """The steps of a decision that was made with recording.

    The arithmetic is found for the *scored* nodes. With *asked*, the trace has the answer of each
    rule about that node.
    """
    if decision.error or decision.held is not None or decision.refused is not None:
        return DecisionTrace(prepared=tuple(_prepared(view, pod, profile)))
    search = _Trace(view, pod, profile, decision)
    return DecisionTrace(
        prepared=tuple(_prepared(view, pod, profile)),
        filters=tuple(search.filters()),
        asked=len(decision.examined),
        asks_all=profile.always_check_all,
        passes=tuple(search.passes(asked)),
        node=asked or "",
        answers=tuple(search.answers(asked)) if asked in decision.examined else (),
        scores=tuple(search.scores(scored)),
        sums=tuple(_sums(decision, scored)),
        selection=selection_of(decision, profile.ties),
        evictions=tuple(search.evictions(asked)),
        criteria=tuple(search.criteria()),
    )


def _prepared(view: View, pod: Incoming, profile: Profile) -> Iterator[Prepared]:
    for rule in profile.predicates:
        for part in rule.cause_parts(pod.cls):
            yield from part.prepared(pod, view)


class _Trace:
    """Finds the steps of one decision."""

    def __init__(self, view: View, pod: Incoming, profile: Profile, decision: Decision) -> None:
        self._view, self._pod, self._profile, self._decision = view, pod, profile, decision
        self._taking_part: list[Positioned] = PreFilter(pod, view, profile).taking_part()
        self._checking = {each.rule.name for each in self._taking_part}

    def filters(self) -> Iterator[FilterStep]:
        """What each rule did, in order; before the first, nodes that rules left out by name."""
        decision = self._decision
        rejected: dict[str, list[str]] = {}
        reasons: dict[str, Counter[str]] = {}
        first: dict[str, str] = {}
        for name, code in zip(decision.examined, decision.codes.tolist(), strict=True):
            if code <= FITS:
                continue
            for rule, texts in decision.verdict(code).by_rule:
                step = rule or NAMED_NODES
                rejected.setdefault(step, []).append(name)
                reasons.setdefault(step, Counter()).update(texts)
                first.setdefault(name, step)
        gone = Counter(first.values())
        left = len(decision.examined)
        names = [rule.name for rule in self._profile.predicates]
        for name in [NAMED_NODES, *names] if NAMED_NODES in rejected else names:
            asked = len(decision.examined) if self._profile.always_check_all else left
            left -= gone[name]
            yield FilterStep(
                name,
                checks=name in self._checking or name == NAMED_NODES,
                asked=asked,
                rejected=len(rejected.get(name, ())),
                left=left,
                reasons=tuple(reasons.get(name, Counter()).items()),
                nodes=tuple(rejected.get(name, ())),
            )
        if self._profile.extenders:
            failed = decision.extender_failed
            counted: Counter[str] = Counter()
            for messages in failed.values():
                counted.update(messages)
            yield FilterStep(
                EXTENDERS,
                checks=True,
                asked=left,
                rejected=len(failed),
                left=left - len(failed),
                reasons=tuple(counted.items()),
                nodes=tuple(failed),
            )

    def answers(self, node: str | None) -> Iterator[FilterAnswer]:
        """What each rule said about one node."""
        decision = self._decision
        code = int(decision.codes[list(decision.examined).index(node or "")])
        yield from self._walk(code)

    def _walk(self, code: int, error: str = "") -> Iterator[FilterAnswer]:
        """The rules in order, with what they said for a node to get this verdict."""
        given = dict(self._view.verdicts[code].by_rule) if code > FITS else {}
        if "" in given:
            yield FilterAnswer(NAMED_NODES, fits=False, reasons=given[""])
        stopped = "" in given
        for rule in self._profile.predicates:
            name = rule.name
            if stopped or name not in self._checking:
                yield FilterAnswer(name, fits=None if stopped else True)
                continue
            reasons = given.get(name, ())
            yield FilterAnswer(name, fits=name not in given, reasons=reasons)
            stopped = name in given and not self._profile.always_check_all
        if code < FITS:
            yield FilterAnswer("", fits=False, reasons=(error,))

    def passes(self, asked: str | None) -> Iterator[NodePasses]:
        """The nodes that are filtered with their nominated pods and without."""
        view, profile = self._view, self._profile
        examined = set(self._decision.examined)
        names = [name for name in view.pods.nominated if name in examined]
        names.sort(key=lambda name: (name != asked, view.nodes.row_of[name]))
        for name in names[:MOST_PASSES]:
            nominees = nominees_of(view, name, self._pod)
            if not nominees:
                continue
            crowded = TrialRow(view, view.nodes.row_of[name])
            for other in nominees:
                crowded.add(other, nominated=not profile.nominees_count_for_affinity)
            code, error = self._verdict(crowded)
            second: tuple[FilterAnswer, ...] = ()
            if code == FITS:
                second = tuple(self._walk(*self._verdict(TrialRow(view, view.nodes.row_of[name]))))
            yield NodePasses(
                name,
                tuple(NominatedPod(other.key, other.priority) for other in nominees),
                tuple(self._walk(code, error)),
                second,
                own_affinity=profile.nominees_count_for_affinity,
            )

    def _verdict(self, row: TrialRow) -> tuple[int, str]:
        code, _ = run_filters_on_row(
            self._pod, row, self._taking_part, check_all=self._profile.always_check_all
        )
        return code, next(iter(row.errors.values()), "")

    def scores(self, names: Sequence[str]) -> Iterator[ScoreStep]:
        """How each rule came to its scores of some nodes."""
        decision, view = self._decision, self._view
        if decision.totals is None:
            return
        rules = {each.name: each.priority for each in self._profile.priorities}
        among = ManyRows(view, view.nodes.rows_named(decision.feasible))
        position = {name: at for at, name in enumerate(decision.feasible)}
        for column in decision.scores:
            rows = [(name, position[name]) for name in names if name in position]
            rule = rules.get(column.name)
            if rule is None:
                yield _extender_step(column, rows, extender_scale(self._profile))
                continue
            yield ScoreStep(
                column.name,
                column.weight,
                rule.formula,
                column.uniform,
                rule.normalizes,
                tuple(self._working(rule, column, among, name, at) for name, at in rows),
            )

    def _working(
        self, rule: ScoreRule, column: ScoreColumn, among: ManyRows, name: str, at: int
    ) -> Working:
        raw, score = int(column.raw[at]), int(column.score[at])
        digits = Working(name, text_of(raw), raw, text_of(score) if rule.normalizes else "", score)
        if column.uniform:
            return digits
        row = WrittenRow(self._view, self._view.nodes.row_of[name])
        try:
            own: Any = rule.score_among(self._pod, row, among)
        except AttemptError:
            return digits
        if own is None or int(own) != raw:
            own = written(raw)
        final: Any = None
        if rule.normalizes:
            final = rule.normalize_one(self._pod, row, among, column.raw, written(raw))
            final = written(score) if final is None or int(final) != score else final
        return Working(name, text_of(own), raw, "" if final is None else text_of(final), score)

    def evictions(self, asked: str | None) -> Iterator[EvictionWalk]:
        """The search for victims on the candidates, the chosen one first."""
        preemption, post_filter = self._decision.preemption, self._post_filter()
        if preemption is None or post_filter is None or not preemption.eligible:
            return
        first = dict.fromkeys(name for name in (preemption.node, asked) if name)
        wanted = [*first, *(name for name in preemption.candidates if name not in first)]
        potential = set(preemption.potential)
        walk = PutBack(self._view, self._pod, self._profile, post_filter.victim_policy)
        for name in [each for each in wanted if each in potential][:MOST_CANDIDATES]:
            yield _eviction_walk(walk, name)

    def criteria(self) -> Iterator[CriterionStep]:
        """How the criteria chose among the candidates."""
        preemption, post_filter = self._decision.preemption, self._post_filter()
        if preemption is None or post_filter is None or len(preemption.candidates) < 2:
            return
        names = list(preemption.candidates)
        table = ListedCandidates(preemption.candidates).table()
        if not table.counts.all():
            return
        for step in narrowed(table, post_filter.criteria):
            costs = zip(step.before.tolist(), step.costs.tolist(), strict=True)
            yield CriterionStep(
                step.criterion.name,
                tuple((names[place], float(cost)) for place, cost in costs),
                tuple(names[place] for place in step.left.tolist()),
            )

    def _post_filter(self) -> EvictingPostFilter | None:
        evicting = (p for p in self._profile.post_filters if isinstance(p, EvictingPostFilter))
        return next(evicting, None)


def _extender_step(column: ScoreColumn, rows: Sequence[tuple[str, int]], scale: int) -> ScoreStep:
    """The scores that an extender gave, which computes them out of sight."""
    nodes = []
    for name, at in rows:
        score = int(column.score[at])
        answer = written(score) if scale == 1 else written(score // scale) * written(scale)
        if int(answer) != score:  # it left the range of 64 bits
            answer = written(score)
        nodes.append(Working(name, text_of(answer), score, "", score))
    formula = "what the extender answers" + (f", times {scale}" if scale != 1 else "")
    return ScoreStep(
        column.name, column.weight, formula, uniform=False, reduces=False, nodes=tuple(nodes)
    )


def _eviction_walk(walk: PutBack, name: str) -> EvictionWalk:
    """The steps of the search on one node."""
    pods = walk.lower(name)
    still = walk.without(name)
    tried: Iterable[TriedPod] = (
        ()
        if still
        else (
            TriedPod(each.pod.key, each.pod.priority, each.stays, each.reasons, each.budgets)
            for each in walk.put_back(name)
        )
    )
    return EvictionWalk(name, tuple(pod.key for pod in pods), still, tuple(tried))


def _sums(decision: Decision, names: Sequence[str]) -> Iterator[NodeSum]:
    """The total of some nodes as a sum."""
    if decision.totals is None:
        return
    position = {name: at for at, name in enumerate(decision.feasible)}
    for name in names:
        at = position.get(name)
        if at is None:
            continue
        total: Any = 0
        for column in decision.scores:
            total += written(int(column.score[at])) * written(column.weight)
        rest = int(decision.totals[at]) - int(total)
        if rest or not decision.scores:
            total += written(rest)
        yield NodeSum(name, text_of(total), int(decision.totals[at]))


def selection_of(decision: Decision, ties: str) -> Selection | None:
    """How one of the nodes with the best total was taken by the rule *ties*."""
    if decision.node is None or not decision.tied:
        return None
    best = None if decision.totals is None else int(np.max(decision.totals))
    return Selection(
        best, decision.tied, tuple(decision.best), ties, decision.cursor, decision.node
    )
