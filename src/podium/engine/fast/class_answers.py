"""What the rules answered for a class of pods, kept true as the cluster changes.

A pod of a class seen before does not need all rules on all rows again. Answers that depend on one
row alone are kept in `RowAnswers`, shared by the classes that such rules cannot tell apart. What
depends on other rows (affinity, spreading, services, volumes) is evaluated at every decision, and
often is idle. If everything left depends on single rows, nothing is scanned at all.

This is the equivalence cache of kube-scheduler v1.13, in columns; `docs/equivalence.md` compares
the two.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.engine.fast.answer_matrix import AnswerMatrix
from podium.engine.fast.compiled_rows import RowKernels
from podium.engine.fast.row_answers import RowAnswers, RowRules
from podium.engine.fast.score_table import GroupLayouts
from podium.engine.framework.class_scopes import scopes_of
from podium.engine.framework.decision import NO_REJECTIONS
from podium.engine.framework.rule import Activity, AttemptError, Positioned, Scope, Watched
from podium.engine.pipelines.filtering import Fit, run_filters
from podium.engine.pipelines.scoring import run_scores, run_scores_of_few
from podium.engine.rows.row_groups import Grouping
from podium.engine.rows.rows import ManyRows
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.fast.score_index import GroupIndex, ScoreIndex
    from podium.engine.fast.score_table import (
        GroupTable,
        ScoreTable,
        SearchedScores,
        SearchedTable,
        TalliedTable,
    )
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Everywhere, Rule
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

BYTES_PER_ROW = 36
#: The answers of so many classes are kept at most, besides what they share.
MOST_CLASSES = 4096
_ANYTHING, _SELECTORS = int(Watched.ANYTHING), int(Watched.SELECTORS)
_SELECTED_PODS = int(Watched.SELECTED_PODS)
_IDLE = Activity.IDLE
NO_RULES: Sequence[Positioned] = ()


class FeasibleGroups(NamedTuple):
    """The groups of rows that a pod fits on."""

    table: GroupIndex | GroupTable | TalliedTable | SearchedTable
    groups: RowGroups
    #: How many rows they have.
    feasible_rows: int
    #: How many rows of other groups were rejected with which verdict.
    rejections: Counter[int]


class SortedRules:
    """The rules of a profile by what their answers depend on, for pods of one form."""

    __slots__ = (
        "_form_key",
        "_form_scopes",
        "_row_scopes",
        "cluster",
        "foreseeable",
        "joint",
        "row",
        "watches_selected_pods",
        "watches_selectors",
    )

    def __init__(self, cls: PodClass, profile: Profile) -> None:
        of_node: list[Positioned] = []
        of_pods: list[Positioned] = []
        flat: list[Weighted] = []
        #: Filters that look beyond single rows.
        self.cluster: list[Positioned] = []
        #: Scores that look at all feasible rows, or beyond the row.
        self.joint: list[Weighted] = []
        scopes = scopes_of(cls, profile)
        watched = 0
        row_scopes: list[tuple[Rule, Hashable]] = []
        for position, (rule, scope) in enumerate(
            zip(profile.predicates, scopes.filters, strict=True)
        ):
            if scope is Scope.NONE:
                continue
            positioned = Positioned(position, rule)
            if scope > Scope.PODS:
                self.cluster.append(positioned)
                watched |= int(rule.watched(cls))
            else:
                (of_node if scope is Scope.NODE else of_pods).append(positioned)
                row_scopes.append((rule, (position, scope)))
        for number, (each, scope) in enumerate(zip(profile.priorities, scopes.scores, strict=True)):
            if scope <= Scope.PODS and not each.priority.normalizes:
                flat.append(each)
                row_scopes.append((each.priority, (-number - 1, scope)))
            else:
                self.joint.append(each)
                watched |= int(each.priority.watched(cls))
        #: Filters and scores that look at single rows.
        self.row = RowRules(of_node, of_pods, flat)
        #: Each of these with its place among the rules, and its scope: those whose keys are the
        #: same for all classes of the form, and the others.
        self._form_scopes = [each for each in row_scopes if each[0].keyed_by_form]
        self._row_scopes = [each for each in row_scopes if not each[0].keyed_by_form]
        #: The keys of the first, once they are known.
        self._form_key: RowKey | None = None
        #: Whether it can be told from counters that no other rule would answer otherwise.
        self.foreseeable = not watched & _ANYTHING
        self.watches_selectors = bool(watched & _SELECTORS)
        self.watches_selected_pods = bool(watched & _SELECTED_PODS)

    def row_key(self, cls: PodClass) -> Hashable:
        """Equal for classes that get the same answers on every row."""
        key = self._form_key
        if key is None or cls.host:
            key = RowKey(_row_keys(cls, self._form_scopes))
            if not cls.host:
                self._form_key = key
        return (key, _row_keys(cls, self._row_scopes)) if self._row_scopes else key


class RowKey:
    """What rules of single rows read of a class; its hash is computed once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowKey) and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash


def _row_keys(cls: PodClass, scopes: Sequence[tuple[Rule, Hashable]]) -> Hashable:
    return tuple([(place, rule.row_key(cls)) for rule, place in scopes])


def sorted_rules(cls: PodClass, profile: Profile) -> SortedRules:
    """The rules of the profile for pods of the form of this class."""
    key = (profile.token, SortedRules)
    found: SortedRules | None = cls.form.memo.get(key)
    if found is None:
        found = cls.form.memo[key] = SortedRules(cls, profile)
    return found


class ClassRowRules:
    """The rules that look at single rows, for one class of pods."""

    __slots__ = ("key", "rules", "sorted")

    def __init__(self, cls: PodClass, profile: Profile) -> None:
        self.sorted = sorted_rules(cls, profile)
        self.rules = self.sorted.row
        #: Equal for classes that get the same answers on every row.
        self.key = self.sorted.row_key(cls)


class ClassAnswers:
    """The answers of the rules for one class of pods."""

    #: The answers for single rows; `start` finds them.
    rows: RowAnswers
    #: Cluster-wide rules that are asked about single rows, those whose answers are kept, and those
    #: to evaluate at this decision.
    _on_own_row: Sequence[Positioned]
    _kept: Sequence[Positioned]
    _evaluated: Sequence[Positioned]

    def __init__(
        self, pod: Incoming, view: View, profile: Profile, single: ClassRowRules, cache: AnswerCache
    ) -> None:
        self.view = view
        self.cls: PodClass = pod.cls
        self.profile = profile
        self._highest = profile.highest_score
        self.single = single
        self._cache = cache
        self._cluster_rules = single.sorted.cluster
        self.joint = single.sorted.joint
        self._foreseeable = single.sorted.foreseeable
        self._watches_selectors = single.sorted.watches_selectors
        #: The counters of what the rules look at, when they were last asked.
        self._outlook: tuple[Hashable, ...] | None = None
        self._has_terms = single.sorted.watches_selected_pods
        #: Whether a term of placed pods selected such pods then.
        self._is_selected = True
        #: What the joint rules answered to `everywhere`; None before they are asked.
        self._everywhere: list[Everywhere | None] | None = None
        #: The last such answers that are scores for every row, all of them in range.
        self._in_range: list[Everywhere | None] | None = None
        #: The answers for which `_sort_joint` was last called, and what it found.
        self._sorted_for: list[Everywhere | None] | None = None
        self._differing: list[Weighted] = []
        self._not_known: list[Everywhere | None] = []
        self._constant: int | None = None
        #: What the rules answered to `everywhere` when they were asked for groups, and these.
        self._grouped_for: tuple[list[Everywhere | None] | None, Grouping | None] = (None, None)
        #: What the answers of cluster-wide rules that are kept per row depend on besides the row.
        self._contexts: list[Hashable] = []
        #: For so many decisions the index by group is not asked for.
        self._ungrouped = 0
        #: Of the cluster-wide rules that were asked for more than one decision, by position.
        self._steady: dict[int, _Steady] = {}
        self._activities = self._ask_activities(pod)
        self._sort_cluster_rules()

    # Keeping up with the cluster ------------------------------------------------------------------

    def _ask_activities(self, pod: Incoming) -> list[Activity]:
        return [each.rule.activity(pod, self.view) for each in self._cluster_rules]

    def _ask_contexts(self, pod: Incoming) -> list[Hashable]:
        """What the rules on single rows depend on besides."""
        return [each.rule.row_context(pod, self.view) for each in self._on_own_row]

    def _sort_cluster_rules(self) -> None:
        """Cluster-wide rules whose answers are kept now, and those asked at every decision."""
        if not self._steady and max(self._activities, default=_IDLE) <= _IDLE:
            self._on_own_row = self._kept = self._evaluated = NO_RULES
            return
        asked = list(zip(self._cluster_rules, self._activities, strict=True))
        self._on_own_row = [p for p, activity in asked if activity is Activity.OWN_ROW]
        far = [p for p, activity in asked if activity is not Activity.OWN_ROW]
        steady = self._steady
        self._kept = [p for p in far if p.position in steady and steady[p.position].kept]
        self._sort_by_activity()

    def _sort_by_activity(self) -> None:
        """The cluster-wide rules to evaluate at this decision: active, and not kept."""
        self._evaluated = [
            each
            for each, activity in zip(self._cluster_rules, self._activities, strict=True)
            if activity is Activity.ACTIVE and each not in self._kept
        ]

    @property
    def has_own_rows(self) -> bool:
        """Whether answers of cluster-wide rules are kept per row: then rows are not shared."""
        return bool(self._on_own_row or self._kept)

    def start(self, pod: Incoming) -> None:
        """Find the answers for single rows, or make them."""
        self.epoch = self.view.journal.epoch
        self.namespaces = self.view.catalog.namespaces.version
        self._contexts = self._ask_contexts(pod)
        if not self.has_own_rows:
            self.rows = self._cache.shared_rows(pod, self.single)
            return
        of_node, of_pods, flat = self.single.rules
        rules = RowRules(
            sorted([*of_node, *self._kept], key=_position),
            sorted([*of_pods, *self._on_own_row], key=_position),
            flat,
        )
        self.rows = self._cache.new_rows(pod, rules)
        self._cache.trim_rows()

    def _have_cluster_rules_changed(self, pod: Incoming) -> bool:
        """Ask the cluster-wide rules again; whether other answers are to be kept than before."""
        changed = False
        before, self._activities = self._activities, self._ask_activities(pod)
        if self._on_own_row:
            contexts = self._ask_contexts(pod)
            changed = contexts != self._contexts
            self._contexts = contexts
        if before == self._activities and not self._kept and Activity.ACTIVE not in before:
            return changed
        for each, was, activity in zip(self._cluster_rules, before, self._activities, strict=True):
            if (was is Activity.OWN_ROW) != (activity is Activity.OWN_ROW):
                changed = True
            if activity is Activity.OWN_ROW:
                continue
            # Watched at every decision, or a key that comes back would pass for one that stayed.
            steady = self._steady_of(each)
            if steady.kept or activity is Activity.ACTIVE:
                changed = steady.watch(each.rule.answer_key(pod, self.view)) or changed
        if not changed and before != self._activities:
            self._sort_by_activity()
        return changed

    def _steady_of(self, each: Positioned) -> _Steady:
        found = self._steady.get(each.position)
        if found is None:
            decisions = self.profile.tuning.steady_decisions
            found = self._steady[each.position] = _Steady(decisions)
        return found

    def _has_same_outlook(self) -> bool:
        """Whether nothing changed that the rules look at to say whether they have anything to say.

        With pods on nodes that do not exist, rules on affinity look at more than terms.
        """
        view = self.view
        if not self._foreseeable or view.pods.unknown_nodes:
            return False
        now = (
            view.journal.node_changes,
            view.pods.presence.changes,
            view.catalog.selection_changes() if self._watches_selectors else 0,
        )
        before, self._outlook = self._outlook, now
        if now == before:
            return True
        # Where no term selects such pods, it does not matter whether pods carry them.
        were_selected, self._is_selected = (
            self._is_selected,
            bool(view.terms_selecting(self.cls.labels)),
        )
        others_same = before is not None and (now[0], now[2]) == (before[0], before[2])
        return not self._has_terms and others_same and not were_selected and not self._is_selected

    def refresh(self, pod: Incoming) -> None:
        """Bring the answers up to date: ask the rules that may have changed their mind."""
        view = self.view
        if self.epoch != view.journal.epoch or self.namespaces != view.catalog.namespaces.version:
            self._everywhere = self._outlook = None
            if self._cluster_rules:
                self._have_cluster_rules_changed(pod)
                self._sort_cluster_rules()
            self.start(pod)
        elif not self._has_same_outlook() or self._evaluated or self._kept:
            self._everywhere = None
            if self._cluster_rules and self._have_cluster_rules_changed(pod):
                self._sort_cluster_rules()
                self.start(pod)
        self.rows.refresh(pod)

    # Answering ------------------------------------------------------------------------------------

    def indexed(
        self, pod: Incoming, order: np.ndarray
    ) -> ScoreIndex | ScoreTable | SearchedScores | None:
        """The rows by score, if single rows are all that counts for this pod now."""
        if self._evaluated or not self.rows.has_scores():
            return None
        known = self._everywhere
        if known is None:
            known = self._everywhere = self._ask_everywhere(pod)
        if known is not self._in_range:
            highest = self._highest
            for same in known:
                if same is None or (highest is not None and not 0 <= same.score <= highest):
                    return None
            self._in_range = known
        return self.rows.by_score(order)

    def grouped(self, pod: Incoming, order: np.ndarray) -> FeasibleGroups | None:
        """The feasible groups, if all other rules answer the same for all rows of a group.

        To be called after `indexed` gave none. None as well where no group is left.
        """
        if self._ungrouped:
            self._ungrouped -= 1
            return None
        grouping = self._grouping(pod)
        index = self.rows.by_group(order, grouping) if grouping is not None else None
        if index is None:
            # Mostly there will be none next time either, and looking for it costs a little.
            self._ungrouped = self.profile.tuning.steady_decisions
            return None
        groups = index.feasible_groups()
        if not self._evaluated:
            return FeasibleGroups(index, groups, index.count, NO_REJECTIONS)
        rows = ManyRows(self.view, groups.rows.index, groups.rows.memo)
        fit = run_filters(pod, rows, self._evaluated)
        if fit.errors:
            return None
        rejections: Counter[int] = Counter()
        codes = fit.codes.tolist()
        for code, count in zip(codes, index.counts(groups), strict=True):
            if code:
                rejections[code] += count
        if rejections:
            groups = index.narrowed(tuple(code == FITS for code in codes))
        count = index.count - sum(rejections.values())
        return FeasibleGroups(index, groups, count, rejections) if count else None

    def _grouping(self, pod: Incoming) -> Grouping | None:
        """Groups of rows that all other rules answer the same for; None if there are none.

        Verdicts of single rows must come before those of groups.
        """
        if not self.rows.has_scores():
            return None
        evaluated = self._evaluated
        if evaluated and min(map(_position, evaluated)) < self.rows.last_position:
            return None
        known = self._everywhere
        if known is None:
            known = self._everywhere = self._ask_everywhere(pod)
        if not evaluated and self._grouped_for[0] is known:
            return self._grouped_for[1]
        self._sort_joint(known)
        if self._constant is None:
            return None
        view = self.view
        try:
            parts = [Grouping(each.rule.domain_keys(pod, view)) for each in evaluated]
            parts += [
                Grouping(rule.group_keys(pod, view), rule.group_tallies(pod, view))
                for rule in (each.priority for each in self._differing)
            ]
        except AttemptError:
            return None  # scoring reports the error, if it comes to that
        found = _common(parts) if all(keys or tallies for keys, tallies in parts) else None
        self._grouped_for = (known, found)
        return found

    def best_of_groups(
        self, pod: Incoming, found: FeasibleGroups
    ) -> Sequence[int] | np.ndarray | None:
        """The best positions of the feasible groups; None if all rows must be scored.

        Then `totals` reports an error about the first row that is concerned.
        """
        groups, differing = found.groups, self._differing
        if not differing:
            return found.table.best(groups, [0] * len(groups.numbers))
        try:
            few = run_scores_of_few(pod, groups, found.feasible_rows, differing, self.profile)
            if few is not None:
                return found.table.best(groups, few)
            if groups.tallied:
                return None
            scores = run_scores(pod, groups.rows, differing, self.profile, known=self._not_known)
        except AttemptError:
            return None
        return found.table.best(groups, scores.tolist())

    def rejections(self) -> Counter[int]:
        """How many nodes were rejected with which verdict by single rows, as it is now."""
        return self.rows.rejections()

    def feasible(self, order: np.ndarray) -> np.ndarray | None:
        """The rows that fit, in order, if single rows decide that; kept while none changes."""
        return None if self._evaluated else self.rows.feasible(order)

    def fit(self, pod: Incoming, order: np.ndarray) -> Fit:
        """The verdicts in the given order, with the cluster-wide rules evaluated now."""
        codes, positions = self.rows.verdicts(order)
        errors: dict[int, str] = {}
        if not self._evaluated and len(order) == len(self.view.nodes.order):
            return Fit(codes, positions, errors, self.rows.rejections())
        for each in self._evaluated:
            alive = np.flatnonzero(positions > each.position)
            fit = run_filters(pod, ManyRows(self.view, order[alive]), [each])
            rejected = fit.codes != FITS
            codes[alive[rejected]] = fit.codes[rejected]
            positions[alive[rejected]] = each.position
            failed = alive[np.fromiter(fit.errors, np.int64, len(fit.errors))]
            errors.update(zip(failed.tolist(), fit.errors.values(), strict=True))
        return Fit(codes, positions, errors)

    def totals(self, pod: Incoming, rows: np.ndarray) -> np.ndarray:
        """The weighted sums of these feasible rows."""
        kept = self.rows
        if not kept.has_scores():
            at = ManyRows(self.view, rows)
            return run_scores(pod, at, self.profile.priorities, self.profile)
        known = self._everywhere
        if known is None:
            known = self._everywhere = self._ask_everywhere(pod)
        at = ManyRows(self.view, rows, kept.memo_of(rows))
        self._sort_joint(known)
        if self._constant is None:
            joint = run_scores(pod, at, self.joint, self.profile, known=known)
        else:
            joint = run_scores(pod, at, self._differing, self.profile, known=self._not_known)
            if self._constant:
                joint += self._constant
        joint += kept.sums(rows)
        return joint

    def _sort_joint(self, known: list[Everywhere | None]) -> None:
        """Find the joint scores that differ between rows, and the sum of what the others give.

        The sum is None if one of those is out of range, which `run_scores` has to report.
        """
        before, self._sorted_for = self._sorted_for, known
        if known is before or known == before:
            return
        highest = self._highest
        pairs = list(zip(self.joint, known, strict=True))
        same = [(each.weight, found.score) for each, found in pairs if found is not None]
        self._differing = [each for each, found in pairs if found is None]
        self._not_known = [None] * len(self._differing)
        in_range = highest is None or all(0 <= score <= highest for _, score in same)
        self._constant = sum(weight * score for weight, score in same) if in_range else None

    def _ask_everywhere(self, pod: Incoming) -> list[Everywhere | None]:
        """What each joint rule gives to every row; None where rows must be scored."""
        found: list[Everywhere | None] = []
        for each in self.joint:
            try:
                found.append(each.priority.everywhere(pod, self.view))
            except AttemptError:
                found.append(None)  # scoring reports the error, if it comes to that
        return found


def _position(each: Positioned) -> int:
    return each.position


def _common(parts: Sequence[Grouping]) -> Grouping:
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

    def watch(self, key: Hashable) -> bool:
        """Note the key of one more decision; True if answers are now kept, or no more."""
        same = key is not None and key == self.key
        self.key = key
        if self.kept and not same:
            self.kept, self.streak, self.decisions = False, 0, self.decisions * 2
            return True
        self.streak = self.streak + 1 if same else 0
        if not self.kept and self.streak >= self.decisions:
            self.kept = True
            return True
        return False


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
        self._kernels = RowKernels(profile.tuning.batches_to_compile)
        self._matrix = AnswerMatrix(view)
        self._kept: OrderedDict[int, ClassAnswers | None] = OrderedDict()
        #: By `ClassRowRules.key`; None for rules that were asked once only.
        self._shared: OrderedDict[Hashable, RowAnswers | None] = OrderedDict()

    def of(self, pod: Incoming) -> ClassAnswers | None:
        """The answers of the pod's class, brought up to date; None when it has none yet."""
        if self._profile.always_check_all:
            return None
        key = pod.cls.id
        kept = self._kept
        answers = kept.get(key)
        if answers is not None:
            answers.refresh(pod)
            kept.move_to_end(key)
            return answers
        first = key not in kept
        kept[key] = None
        while len(kept) > MOST_CLASSES:
            kept.popitem(last=False)
        single = ClassRowRules(pod.cls, self._profile)
        if single.key not in self._shared:
            self._shared[single.key] = None
            while len(self._shared) > MOST_CLASSES:
                self._drop_shared()
            return None
        answers = ClassAnswers(pod, self._view, self._profile, single, self)
        if first and answers.has_own_rows:
            return None
        answers.start(pod)
        answers.rows.refresh(pod)
        kept[key] = answers
        kept.move_to_end(key)
        return answers

    def shared_rows(self, pod: Incoming, single: ClassRowRules) -> RowAnswers:
        """The answers for single rows that classes with these rules share."""
        found = self._shared.get(single.key)
        if found is None:
            found = self.new_rows(pod, single.rules, self._matrix)
            self._shared[single.key] = found
            self._shared.move_to_end(single.key)
            self.trim_rows()
        else:
            self._shared.move_to_end(single.key)
        return found

    def new_rows(
        self, pod: Incoming, rules: RowRules, matrix: AnswerMatrix | None = None
    ) -> RowAnswers:
        """The answers of some rules for single rows, which nothing is known about yet."""
        return RowAnswers(
            pod,
            self._view,
            self._profile,
            rules,
            layouts=self._layouts,
            kernels=self._kernels,
            matrix=matrix,
        )

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
        self._matrix.drop(rows)
        return True
