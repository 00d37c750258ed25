"""What the rules answered for a class of pods, kept true as the cluster changes.

A pod of a class seen before does not need all rules on all rows again. Answers that depend on one
row alone are kept in `RowAnswers`, shared by the classes that such rules cannot tell apart. What
depends on other rows (affinity, spreading, services, volumes) is evaluated at every decision, and
often is idle. If everything left depends on single rows, nothing is scanned at all.

This is the equivalence cache of kube-scheduler v1.13, in columns; `docs/equivalence.md` compares
the two.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.fast.row_answers import RowAnswers
from podium.engine.framework.decision import NO_REJECTIONS
from podium.engine.framework.plan import RowRules, plan_of
from podium.engine.framework.rule import Activity, AttemptError, Positioned
from podium.engine.pipelines.filtering import Fit, run_filters
from podium.engine.pipelines.scoring import run_scores, run_scores_of_few
from podium.engine.rows.row_groups import Grouping, GroupLayouts
from podium.engine.rows.rows import ManyRows
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from podium.engine.fast.answer_columns import ScoreTable
    from podium.engine.fast.score_index import ScoreIndex
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Everywhere
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

BYTES_PER_ROW = 36
#: The answers of so many classes are kept at most, besides what they share.
MOST_CLASSES = 4096
NO_RULES: Sequence[Positioned] = ()
#: All rows are one group.
ALL_ROWS = Grouping()


@dataclass(slots=True)
class FeasibleGroups:
    """The groups of rows that a pod fits on."""

    table: ScoreIndex | ScoreTable
    groups: RowGroups
    #: The scores that differ between them.
    differing: Sequence[Weighted]
    #: How many rows they have.
    feasible_rows: int
    #: How many rows of other groups were rejected with which verdict.
    rejections: Mapping[int, int]


@dataclass(slots=True)
class JointScores:
    """What the scores that look beyond single rows say, as the cluster is now."""

    #: What each of them gives to every row; None where rows must be scored.
    known: Sequence[Everywhere | None]
    #: The weighted sum of these; None if one is out of range, which `run_scores` has to report.
    constant: int | None
    #: Those that differ between rows.
    differing: Sequence[Weighted]
    #: Groups of rows to which these give equal scores; None if there are none.
    grouping: Grouping | None


class ClassAnswers:
    """The answers of the rules for one class of pods."""

    #: The answers for single rows.
    rows: RowAnswers

    def __init__(self, pod: Incoming, view: View, profile: Profile, cache: AnswerCache) -> None:
        self.view = view
        self.profile = profile
        self.plan = plan_of(pod.cls, profile)
        #: Equal for classes that get the same answers on every row.
        self.row_key = self.plan.row_key(pod.cls)
        self._cache = cache
        self._labels = pod.cls.labels
        #: The counters of all that the rules beyond single rows look at, when they were last
        #: asked; and those of them that matter to this class.
        self._counters: tuple[int, ...] = ()
        self._outlook: tuple[int, ...] = ()
        #: The epoch of the journal, and the version of the namespaces.
        self._state = (-1, -1)
        #: Rules beyond single rows that are kept per row: position, and what holds while they are.
        self._composition: list[tuple[int, Hashable]] = []
        self._of_node = self._of_pods = NO_RULES
        #: Those that are evaluated at this decision.
        self._evaluated: Sequence[Positioned] = NO_RULES
        self._joint: JointScores | None = None
        #: Of the rules that were active at some decision, by position.
        self._steady: dict[int, _Steady] = {}
        self._note_outlook()
        self._look_at_cluster(pod)

    # Keeping up with the cluster ------------------------------------------------------------------

    def refresh(self, pod: Incoming) -> None:
        """Bring the answers up to date: ask the rules that may have changed their mind."""
        always = self.plan.watches_anything or self._evaluated or self._of_node
        if always or self._note_outlook():
            others_kept = self._look_at_cluster(pod)
            if others_kept or self._state != self._current_state():
                self.start(pod)
        self.rows.refresh(pod)

    def _current_state(self) -> tuple[int, int]:
        return self.view.journal.epoch, self.view.catalog.namespaces.version

    def _note_outlook(self) -> bool:
        """Note what rules look at to say whether they have anything to say; True if it changed."""
        view, plan = self.view, self.plan
        journal, catalog = view.journal, view.catalog
        counters = (
            journal.epoch,
            journal.node_changes,
            catalog.namespaces.version,
            catalog.selections.changes if plan.watches_selectors else 0,
            view.pods.presence.changes,
            # With pods on nodes that do not exist, rules on affinity look at more than terms.
            journal.changes if view.pods.unknown_nodes else -1,
        )
        if counters == self._counters:
            return False
        self._counters = counters
        before = self._outlook
        matters = plan.watches_pods or (plan.watches_terms and view.terms_selecting(self._labels))
        # Where no term selects such pods, it does not matter whether pods carry them.
        self._outlook = counters if matters else (*counters[:4], -1, counters[5])
        return self._outlook != before

    def _look_at_cluster(self, pod: Incoming) -> bool:
        """Ask the rules that look beyond single rows; True if others are kept per row than before.

        A rule is kept per row if its activity says that it looks at that row alone, or if what its
        answers depend on besides the nodes has stayed the same for some decisions.
        """
        self._joint = None
        view = self.view
        composition: list[tuple[int, Hashable]] = []
        of_node, of_pods, evaluated = [], [], []
        for each in self.plan.cluster:
            position, rule = each
            activity = rule.activity(pod, view)
            if activity is Activity.OWN_ROW:
                of_pods.append(each)
                composition.append((position, (True, rule.row_context(pod, view))))
                continue
            steady = self._steady.get(position)
            if steady is None and activity is Activity.ACTIVE:
                steady = self._steady[position] = _Steady(self.profile.tuning.steady_decisions)
            elif steady is None:
                continue
            # Watched at every decision, or a key that comes back would pass for one that stayed.
            if steady.kept or activity is Activity.ACTIVE:
                steady.watch(rule.answer_key(pod, view))
            if steady.kept:
                of_node.append(each)
                composition.append((position, (False, steady.key)))
            elif activity is Activity.ACTIVE:
                evaluated.append(each)
        self._of_node, self._of_pods, self._evaluated = of_node, of_pods, evaluated
        before, self._composition = self._composition, composition
        return before != composition

    @property
    def has_own_rows(self) -> bool:
        """Whether rules beyond single rows are kept per row: then these are not shared."""
        return bool(self._composition)

    def start(self, pod: Incoming) -> None:
        """Find the answers for single rows, or make them."""
        self._state = self._current_state()
        if not self._composition:
            self.rows = self._cache.shared_rows(pod, self.row_key, self.plan.rows)
            return
        of_node, of_pods, flat = self.plan.rows
        rules = RowRules(
            sorted([*of_node, *self._of_node]), sorted([*of_pods, *self._of_pods]), flat
        )
        self.rows = self._cache.new_rows(pod, rules)
        self._cache.trim_rows()

    def _ask_joint_scores(self, pod: Incoming) -> JointScores:
        """An error of a rule counts as no answer: scoring reports it, if it comes to that."""
        view, highest = self.view, self.profile.highest_score
        known: list[Everywhere | None] = []
        differing: list[Weighted] = []
        constant: int | None = 0
        for each in self.plan.joint:
            try:
                same = each.priority.everywhere(pod, view)
            except AttemptError:
                same = None
            known.append(same)
            if same is None:
                differing.append(each)
            elif highest is not None and not 0 <= same.score <= highest:
                constant = None
            elif constant is not None:
                constant += each.weight * same.score
        if constant is None:
            return JointScores(known, None, differing, None)
        if not differing:
            return JointScores(known, constant, differing, ALL_ROWS)
        try:
            parts = [
                Grouping(rule.group_keys(pod, view), rule.group_tallies(pod, view))
                for rule in (each.priority for each in differing)
            ]
        except AttemptError:
            return JointScores(known, constant, differing, None)
        grouping = _united(parts) if all(keys or tallies for keys, tallies in parts) else None
        return JointScores(known, constant, differing, grouping)

    # Answering ------------------------------------------------------------------------------------

    def grouped(self, pod: Incoming, order: np.ndarray) -> FeasibleGroups | None:
        """The feasible groups, if all other rules answer the same for all rows of a group.

        Where single rows are all that counts for this pod now, all rows are one group. None as
        well where no group is left.
        """
        if not self.rows.has_scores():
            return None
        joint = self._joint
        if joint is None:
            joint = self._joint = self._ask_joint_scores(pod)
        grouping = joint.grouping
        if grouping is not None and self._evaluated:
            grouping = self._narrower(pod, grouping)
        index = self.rows.columns.by_score(order, grouping) if grouping is not None else None
        if index is None or not index.count:
            return None
        groups = index.feasible_groups()
        found = FeasibleGroups(index, groups, joint.differing, index.count, NO_REJECTIONS)
        return self._filtered(pod, found) if self._evaluated else found

    def _filtered(self, pod: Incoming, found: FeasibleGroups) -> FeasibleGroups | None:
        """The groups that the evaluated filters let pass; None if none does, or one fails."""
        index, groups = found.table, found.groups
        rows = ManyRows(self.view, groups.rows.index, groups.rows.memo)
        fit = run_filters(pod, rows, self._evaluated)
        if fit.errors:
            return None
        rejections: dict[int, int] = {}
        codes = fit.codes.tolist()
        for code, count in zip(codes, index.counts(groups), strict=True):
            if code:
                rejections[code] = rejections.get(code, 0) + count
        if rejections:
            groups = index.narrowed(tuple(code == FITS for code in codes))
        count = index.count - sum(rejections.values())
        if not count:
            return None
        return FeasibleGroups(index, groups, found.differing, count, rejections)

    def _narrower(self, pod: Incoming, grouping: Grouping) -> Grouping | None:
        """Smaller groups, which the evaluated filters answer the same for; None if there are none.

        Verdicts of single rows must come before those of groups.
        """
        evaluated = self._evaluated
        if min(each.position for each in evaluated) < self.rows.last_position:
            return None
        keys = [each.rule.domain_keys(pod, self.view) for each in evaluated]
        return _united([grouping, *map(Grouping, keys)]) if all(keys) else None

    def best_of_groups(
        self, pod: Incoming, found: FeasibleGroups
    ) -> Sequence[int] | np.ndarray | None:
        """The best positions of the feasible groups; None if all rows must be scored.

        Then `totals` reports an error about the first row that is concerned.
        """
        groups, differing = found.groups, found.differing
        if not differing:
            return found.table.best(groups, [0] * len(groups.numbers))
        try:
            few = run_scores_of_few(pod, groups, found.feasible_rows, differing, self.profile)
            if few is not None:
                return found.table.best(groups, few)
            if groups.tallied:
                return None
            known = [None] * len(differing)
            scores = run_scores(pod, groups.rows, differing, self.profile, known=known)
        except AttemptError:
            return None
        return found.table.best(groups, scores.tolist())

    def feasible(self, order: np.ndarray) -> np.ndarray | None:
        """The rows that fit, in order, if single rows decide that; kept while none changes."""
        return None if self._evaluated else self.rows.columns.feasible(order)

    def fit(self, pod: Incoming, order: np.ndarray) -> Fit:
        """The verdicts in the given order, with the cluster-wide rules evaluated now."""
        codes, positions = self.rows.columns.codes(order)
        errors: dict[int, str] = {}
        if not self._evaluated and len(order) == len(self.view.nodes.order):
            return Fit(codes, positions, errors, self.rows.columns.rejections())
        for each in self._evaluated:
            alive = np.flatnonzero(positions > each.position)
            fit = run_filters(pod, ManyRows(self.view, order[alive]), [each])
            rejected = fit.codes != FITS
            codes[alive[rejected]] = fit.codes[rejected]
            positions[alive[rejected]] = each.position
            failed = alive[np.fromiter(fit.errors, np.int64, len(fit.errors))]
            errors.update(zip(failed.tolist(), fit.errors.values(), strict=True))
        return Fit(codes, positions, errors)

    def places(
        self, pod: Incoming, order: np.ndarray, positions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """The places that the rows at these positions have among the feasible rows."""
        fits = self.fit(pod, order).codes == FITS
        places: np.ndarray = np.cumsum(fits)[np.asarray(positions, np.int64)] - 1
        return places

    def totals(self, pod: Incoming, rows: np.ndarray) -> np.ndarray:
        """The weighted sums of these feasible rows."""
        kept, profile = self.rows, self.profile
        if not kept.has_scores():
            return run_scores(pod, ManyRows(self.view, rows), profile.priorities, profile)
        at = ManyRows(self.view, rows, kept.columns.facts_of(rows))
        joint = self._joint
        if joint is None:
            joint = self._joint = self._ask_joint_scores(pod)
        if joint.constant is None:
            totals = run_scores(pod, at, self.plan.joint, profile, known=joint.known)
        else:
            differing = joint.differing
            totals = run_scores(pod, at, differing, profile, known=[None] * len(differing))
            totals += joint.constant
        totals += kept.columns.scores.take(rows)
        return totals


def _united(parts: Sequence[Grouping]) -> Grouping:
    """The grouping whose groups have everything in common that these ask for."""
    keys = {key for each in parts for key in each.keys}
    tallies = dict.fromkeys(tally for each in parts for tally in each.tallies)
    return Grouping(tuple(sorted(keys)), tuple(tallies))


class _Steady:
    """Whether the answers of a rule stay the same from decision to decision."""

    __slots__ = ("decisions", "kept", "key", "streak")

    def __init__(self, decisions: int) -> None:
        self.kept = False
        self.decisions = decisions
        self.streak = 0
        self.key: Hashable = None

    def watch(self, key: Hashable) -> None:
        """Note the key of one more decision."""
        same = key is not None and key == self.key
        self.key = key
        self.streak = self.streak + 1 if same else 0
        if self.kept and not same:
            self.kept, self.decisions = False, self.decisions * 2
        elif not self.kept and self.streak >= self.decisions:
            self.kept = True


class AnswerCache:
    """The answers of the pod classes seen lately, within a budget of memory.

    A class gets answers when it is seen for the second time, or when it shares them with a class
    seen before: one that never comes again costs nothing to keep.
    """

    def __init__(self, view: View, profile: Profile, budget_bytes: int = 1 << 28) -> None:
        self._view = view
        self._profile = profile
        self._budget_bytes = budget_bytes
        self._layouts = GroupLayouts(view)
        self._kept: OrderedDict[int, ClassAnswers | None] = OrderedDict()
        #: By `ClassAnswers.row_key`; None for rules that were asked once only.
        self._shared: OrderedDict[Hashable, RowAnswers | None] = OrderedDict()

    def of(self, pod: Incoming) -> ClassAnswers | None:
        """The answers of the pod's class, brought up to date; None when it has none yet."""
        if self._profile.always_check_all:
            return None
        key = pod.cls.id
        kept = self._kept
        answers = kept.get(key)
        if answers is not None:
            kept.move_to_end(key)  # what is dropped for its rows is older
            answers.refresh(pod)
            return answers
        first = key not in kept
        kept[key] = None
        while len(kept) > MOST_CLASSES:
            kept.popitem(last=False)
        answers = ClassAnswers(pod, self._view, self._profile, self)
        if answers.row_key not in self._shared:
            self._shared[answers.row_key] = None
            while len(self._shared) > MOST_CLASSES:
                self._drop_shared()
            return None
        if first and answers.has_own_rows:
            return None
        answers.start(pod)
        answers.rows.refresh(pod)
        kept[key] = answers
        kept.move_to_end(key)
        return answers

    def shared_rows(self, pod: Incoming, key: Hashable, rules: RowRules) -> RowAnswers:
        """The answers for single rows that classes with this key share."""
        known = self._shared.get(key)
        found = self._shared[key] = known or self.new_rows(pod, rules)
        self._shared.move_to_end(key)
        if known is None:
            self.trim_rows()
        return found

    def new_rows(self, pod: Incoming, rules: RowRules) -> RowAnswers:
        """The answers of some rules for single rows, which nothing is known about yet."""
        return RowAnswers(pod, self._view, self._profile, rules, self._layouts)

    def trim_rows(self) -> None:
        """Drop answers for rows beyond the budget, the oldest first, and classes that hold them."""
        limit = max(4, self._budget_bytes // (BYTES_PER_ROW * self._view.nodes.capacity))
        if len(self._kept) + len(self._shared) <= limit:
            return  # however many of them hold rows
        own = sum(answers is not None and answers.has_own_rows for answers in self._kept.values())
        shared = sum(rows is not None for rows in self._shared.values())
        while own + shared > limit and (len(self._kept) > 1 or len(self._shared) > 1):
            if own > shared:
                _, answers = self._kept.popitem(last=False)
                own -= answers is not None and answers.has_own_rows
            else:
                shared -= self._drop_shared()

    def _drop_shared(self) -> bool:
        """Drop the shared answers that were found longest ago; whether there were any."""
        _, rows = self._shared.popitem(last=False)
        if rows is None:
            return False
        for key, answers in list(self._kept.items()):
            if answers is not None and answers.rows is rows:
                del self._kept[key]
        return True
