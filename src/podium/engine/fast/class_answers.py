"""What the rules answered for a class of pods on every row, kept true as rows change.

A pod of a class seen before does not need all rules on all rows again. `ClassAnswers` holds, per
row, the first verdict and the sum of the scores that depend on that row alone; the journal says
which rows changed since, and only those are evaluated again. What depends on other rows (affinity,
spreading, services, volumes) is evaluated at every decision, and often is idle. If everything left
depends on single rows, totals are indexed by score and nothing is scanned at all.

This is the equivalence cache of kube-scheduler v1.13, in columns; `docs/equivalence.md` compares
the two.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.fast.resource_memo import ResourceMemo
from podium.engine.fast.score_index import ScoreIndex
from podium.engine.framework.rule import Activity, AttemptError, Positioned, Scope, Watched
from podium.engine.pipelines.filtering import Fit, run_filters, run_filters_on_row
from podium.engine.pipelines.scoring import run_row_scores, run_scores
from podium.engine.rows.rows import ManyRows, OneRow, as_array, as_int
from podium.engine.state.verdicts import FITS, histogram

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Hashable

    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Everywhere
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

BYTES_PER_ROW = 36


class ClassAnswers:
    """The answers of the rules for one class of pods, per row."""

    def __init__(self, pod: Incoming, view: View, profile: Profile) -> None:
        self.view = view
        self.cls: PodClass = pod.cls
        self.profile = profile
        self._tuning = profile.tuning
        self._highest = profile.highest_score
        rules = list(map(Positioned, range(len(profile.predicates)), profile.predicates))
        scopes = [rule.scope(pod.cls) for rule in profile.predicates]
        scoped = list(zip(rules, scopes, strict=True))
        self._node_rules = [p for p, scope in scoped if scope is Scope.NODE]
        self._row_rules = [p for p, s in scoped if s in (Scope.RESOURCES, Scope.PODS)]
        self._cluster_rules = [p for p, scope in scoped if not scope.of_row]
        #: Scores that depend on one row alone, and those that look at all feasible rows.
        self.flat = [each for each in profile.priorities if _is_flat(each, pod.cls)]
        self.joint = [each for each in profile.priorities if not _is_flat(each, pod.cls)]
        asked = (*(p.rule for p in self._cluster_rules), *(w.priority for w in self.joint))
        watched = Watched.NOTHING
        for rule in asked:
            watched |= rule.watched(pod.cls)
        #: Whether it can be told from counters that no rule would answer otherwise than before.
        self._foreseeable = Watched.ANYTHING not in watched
        self._watches_selectors = Watched.SELECTORS in watched
        #: The counters of what the rules look at, when they were last asked.
        self._outlook: tuple[int, ...] | None = None
        self.index: ScoreIndex | None = None
        self._rejections: Counter[int] | None = None
        #: What the joint rules answered to `everywhere`; None before they are asked.
        self._everywhere: list[Everywhere | None] | None = None
        #: The last such answers that are scores for every row, all of them in range.
        self._in_range: list[Everywhere | None] | None = None
        self._steady = {
            p.position: _Steady(profile.tuning.steady_decisions) for p in self._cluster_rules
        }
        self._allocate()
        self._activities = self._ask_activities(pod)
        self.rebuild(pod)

    def _allocate(self) -> None:
        size = self.view.nodes.capacity
        self._node_codes = np.zeros(size, np.int32)
        self._node_positions = np.zeros(size, np.int16)
        self._codes = np.zeros(size, np.int32)
        self._positions = np.zeros(size, np.int16)
        self._node_scores = np.zeros(size, np.int64)
        self._scores = np.zeros(size, np.int64)
        #: Rows on which some score is out of range: by the node alone; with its pods, if it fits.
        self._node_wrong: set[int] = set()
        self._wrong: set[int] = set()

    # Keeping up with the cluster ------------------------------------------------------------------

    def _ask_activities(self, pod: Incoming) -> list[Activity]:
        return [each.rule.activity(pod, self.view) for each in self._cluster_rules]

    def _sort_by_activity(self) -> None:
        """The cluster-wide rules to evaluate at this decision: active, and not kept."""
        self._evaluated = [
            each
            for each, activity in zip(self._cluster_rules, self._activities, strict=True)
            if activity is Activity.ACTIVE and each.position not in self._kept
        ]

    def rebuild(self, pod: Incoming) -> None:
        """Evaluate every row."""
        view = self.view
        if len(self._codes) != view.nodes.capacity:
            self._allocate()
        self._node_wrong.clear()
        self._wrong.clear()
        self.epoch = view.journal.epoch
        self.namespaces = view.catalog.namespaces.version
        self.seen = view.journal.rows.end
        self.index = self._rejections = None
        self._sort_cluster_rules()
        rows = view.nodes.order
        self._feasible: tuple[np.ndarray | None, np.ndarray] = (None, rows)
        self._memo: dict[Hashable, Any] = {}
        self._sort_scores(pod)
        self._resources = ResourceMemo(self.cls, self.of_pods, self.scoring_pods, self._highest)
        self._evaluate_nodes(pod, rows)
        self._evaluate_pods(pod, rows)

    def _sort_cluster_rules(self) -> None:
        """Cluster-wide rules whose answers are kept now, and those asked at every decision."""
        asked = list(zip(self._cluster_rules, self._activities, strict=True))
        on_own_row = [p for p, activity in asked if activity is Activity.OWN_ROW]
        far = [p for p, activity in asked if activity is not Activity.OWN_ROW]
        kept = [p for p in far if self._steady[p.position].kept]
        self.of_node = sorted([*self._node_rules, *kept], key=_position)
        self.of_pods = sorted([*self._row_rules, *on_own_row], key=_position)
        self._kept = {p.position for p in kept}
        rules = (*(p.rule for p in self.of_pods), *(each.priority for each in self.flat))
        self._by_columns = any(rule.by_columns for rule in rules)
        self._sort_by_activity()

    def _sort_scores(self, pod: Incoming) -> None:
        """Which flat scores differ between rows, and the sum of what the others give to all."""
        known = [(each, each.priority.everywhere(pod, self.view)) for each in self.flat]
        same = [(each, found.score) for each, found in known if found is not None]
        self.constant = sum(each.weight * score for each, score in same)
        highest = self._highest
        self._constant_wrong = highest is not None and any(
            not 0 <= score <= highest for _, score in same
        )
        differing = [each for each, found in known if found is None]
        self.scoring_nodes = [w for w in differing if w.priority.scope(self.cls) <= Scope.NODE]
        self.scoring_pods = [w for w in differing if w.priority.scope(self.cls) > Scope.NODE]
        keys = [each.priority.answer_key(pod, self.view) for each in self.scoring_nodes]
        self._scoring = (self.constant, self.scoring_nodes, self.scoring_pods, keys)

    def _have_cluster_rules_changed(self, pod: Incoming) -> bool:
        """Ask the cluster-wide rules again; whether other answers are to be kept than before."""
        changed = False
        before, self._activities = self._activities, self._ask_activities(pod)
        if before == self._activities and not self._kept and Activity.ACTIVE not in before:
            return False
        for each, was, activity in zip(self._cluster_rules, before, self._activities, strict=True):
            if (was is Activity.OWN_ROW) != (activity is Activity.OWN_ROW):
                changed = True
            if activity is Activity.OWN_ROW:
                continue
            # Watched at every decision, or a key that comes back would pass for one that stayed.
            steady = self._steady[each.position]
            if steady.kept or activity is Activity.ACTIVE:
                changed = steady.watch(each.rule.answer_key(pod, self.view)) or changed
        if not changed and before != self._activities:
            self._sort_by_activity()
        return changed

    def _has_same_outlook(self) -> bool:
        """Whether nothing changed that the rules look at to say whether they have anything to say.

        With pods on nodes that do not exist, rules on affinity look at more than terms.
        """
        view = self.view
        if not self._foreseeable or view.pods.unknown_nodes:
            return False
        now = (
            view.journal.node_changes,
            view.pods.carried_changes,
            view.catalog.selection_changes() if self._watches_selectors else 0,
        )
        same = now == self._outlook
        self._outlook = now
        return same

    def refresh(self, pod: Incoming) -> None:
        """Evaluate the rows again that changed since the last pod of this class."""
        view = self.view
        journal = view.journal
        if self.epoch != journal.epoch or self.namespaces != view.catalog.namespaces.version:
            if self._cluster_rules:
                self._have_cluster_rules_changed(pod)
            self._everywhere = None
            self.rebuild(pod)
            return
        log = journal.rows
        behind = self.seen - log.start
        if not self._has_same_outlook() or self._evaluated or self._kept:
            self._everywhere = None
            if self._cluster_rules and self._have_cluster_rules_changed(pod):
                behind = -1
        if behind < 0:
            self.rebuild(pod)
            return
        entries = log.entries
        missed = len(entries) - behind
        if missed == 1 and entries[-1] >= 0 and not view.pods.unknown_nodes:
            # The usual case: this class was the last that got a node.
            self.seen += 1
            self._evaluate_one(pod, entries[-1], node_changed=False)
        elif missed:
            self.seen += missed
            self._catch_up(pod, entries[behind:])

    def _catch_up(self, pod: Incoming, news: list[int]) -> None:
        """Evaluate the rows of these entries of the journal again."""
        view = self.view
        if min(news) < 0:
            # A node changed: what was the same for every row may not be so any more.
            before = self._scoring
            self._sort_scores(pod)
            if before != self._scoring:
                self.rebuild(pod)
                return
            self._memo = {}
        rows = {entry if entry >= 0 else ~entry for entry in news}
        if view.pods.unknown_nodes:
            # Rows with pods of an unknown node are in no order of nodes; rules never see them.
            rows -= view.pods.unknown_nodes
        nodes = {~entry for entry in news if entry < 0} & rows
        if len(rows) > self._tuning.one_by_one:
            self._evaluate_many(pod, rows, nodes)
        elif len(rows) > 1 and self._by_columns:
            self._evaluate_together(pod, rows, nodes)
        else:
            for row in rows:
                self._evaluate_one(pod, row, node_changed=row in nodes)

    def _evaluate_many(self, pod: Incoming, rows: set[int], nodes: set[int]) -> None:
        if nodes:
            self._evaluate_nodes(pod, np.fromiter(nodes, np.int64, len(nodes)))
        self._evaluate_pods(pod, np.fromiter(rows, np.int64, len(rows)))
        self.index = self._rejections = None
        self._feasible = (None, self._codes)

    def _evaluate_together(self, pod: Incoming, rows: set[int], nodes: set[int]) -> None:
        """Evaluate a few rows as arrays, and keep the index and the counts."""
        changed = np.fromiter(rows, np.int64, len(rows))
        before = self._codes[changed].tolist()
        if nodes:
            self._evaluate_nodes(pod, np.fromiter(nodes, np.int64, len(nodes)))
        self._evaluate_pods(pod, changed)
        totals = self._scores[changed].tolist()
        for row, was, code, total in zip(
            changed.tolist(), before, self._codes[changed].tolist(), totals, strict=True
        ):
            self._take_over(row, was, code, total)

    def _take_over(self, row: int, before: int, code: int, total: int) -> None:
        """Bring the counts and the index up to date with the new answers of a row."""
        if code != before:
            self._recount(row, before, code)
            if not code or not before:
                self._feasible = (None, self._codes)
        if self.index is not None:
            self.index.put(row, None if code else total)

    def _evaluate_nodes(self, pod: Incoming, rows: np.ndarray) -> None:
        at = ManyRows(self.view, rows)
        fit = run_filters(pod, at, self.of_node)
        self._node_codes[rows], self._node_positions[rows] = fit.codes, fit.positions
        sums, wrong = run_row_scores(pod, at, self.scoring_nodes, highest=self._highest)
        self._node_scores[rows] = as_array(sums) + self.constant
        _mark(self._node_wrong, rows, as_array(wrong))

    def _evaluate_pods(self, pod: Incoming, rows: np.ndarray) -> None:
        at = ManyRows(self.view, rows)
        fit = run_filters(pod, at, self.of_pods)
        earlier = self._node_positions[rows] < fit.positions
        self._codes[rows] = np.where(earlier, self._node_codes[rows], fit.codes)
        self._positions[rows] = np.minimum(self._node_positions[rows], fit.positions)
        sums, wrong = run_row_scores(pod, at, self.scoring_pods, highest=self._highest)
        self._scores[rows] = as_array(sums) + self._node_scores[rows]
        _mark(self._wrong, rows, as_array(wrong) & (self._codes[rows] == FITS))

    def _evaluate_one(self, pod: Incoming, row: int, *, node_changed: bool) -> None:
        at = OneRow(self.view, row)
        if node_changed:
            code, position = run_filters_on_row(pod, at, self.of_node)
            self._node_codes[row], self._node_positions[row] = code, position
            score, out = run_row_scores(pod, at, self.scoring_nodes, highest=self._highest)
            self._node_scores[row] = as_int(score) + self.constant
            _put(self._node_wrong, row, wrong=bool(as_int(out)))
        code, position, total, wrong = self._resources.answer(pod, at)
        earlier = self._node_positions.item(row)
        if earlier < position:
            code, position = self._node_codes.item(row), earlier
        total += self._node_scores.item(row)
        before = self._codes.item(row)
        self._codes[row], self._positions[row] = code, position
        self._scores[row] = total
        if wrong or self._wrong:
            _put(self._wrong, row, wrong=wrong and code == FITS)
        self._take_over(row, before, code, total)

    def _recount(self, row: int, before: int, now: int) -> None:
        counts = self._rejections
        if counts is None or not self.view.nodes.known[row]:
            return
        if now:
            counts[now] += 1
        if before:
            counts[before] -= 1
            if not counts[before]:
                del counts[before]

    # Answering ------------------------------------------------------------------------------------

    def has_scores(self) -> bool:
        """Whether the kept sums may be used: no score of a row that fits is out of range.

        Otherwise the attempt fails, and `run_scores` over the feasible rows says how.
        """
        if self._constant_wrong or self._wrong:
            return False
        return not any(self._codes.item(row) == FITS for row in self._node_wrong)

    def indexed(self, pod: Incoming, order: np.ndarray) -> ScoreIndex | None:
        """The index by score, if single rows are all that counts for this pod now."""
        if self._evaluated or not self.has_scores():
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
        index = self.index
        if index is None or index.order is not order:
            if len(order) != len(self.view.nodes.order):
                return None
            index = self.index = ScoreIndex(order, self._codes, self._scores)
            if len(index.position_of) != len(order):
                # Some row is named twice.
                self.index = None
        return self.index

    def rejections(self) -> Counter[int]:
        """How many nodes were rejected with which verdict by single rows; kept up to date."""
        if self._rejections is None:
            self._rejections = histogram(self._codes[self.view.nodes.order])
        return self._rejections

    def feasible(self, order: np.ndarray) -> np.ndarray | None:
        """The rows that fit, in order, if single rows decide that; kept while none changes."""
        if self._evaluated:
            return None
        if self._feasible[0] is not order:
            self._feasible = (order, order[self._codes[order] == FITS])
            self._memo = {}
        return self._feasible[1]

    def fit(self, pod: Incoming, order: np.ndarray) -> Fit:
        """The verdicts in the given order, with the cluster-wide rules evaluated now."""
        codes, positions = self._codes[order], self._positions[order]
        errors: dict[int, str] = {}
        for each in self._evaluated:
            alive = np.flatnonzero(positions > each.position)
            fit = run_filters(pod, ManyRows(self.view, order[alive]), [each])
            rejected = fit.codes != FITS
            codes[alive[rejected]] = fit.codes[rejected]
            positions[alive[rejected]] = each.position
            errors.update((int(alive[place]), text) for place, text in fit.errors.items())
        return Fit(codes, positions, errors)

    def totals(self, pod: Incoming, rows: np.ndarray) -> np.ndarray:
        """The weighted sums of these feasible rows."""
        at = ManyRows(self.view, rows, self._memo if rows is self._feasible[1] else None)
        if not self.has_scores():
            at.memo = None
            return run_scores(pod, at, self.profile.priorities, self.profile)
        if self._everywhere is None:
            self._everywhere = self._ask_everywhere(pod)
        joint = run_scores(pod, at, self.joint, self.profile, known=self._everywhere)
        totals: np.ndarray = self._scores[rows] + joint
        return totals

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


def _is_flat(each: Weighted, cls: PodClass) -> bool:
    return each.priority.scope(cls).of_row and not each.priority.normalizes


def _mark(wrong_rows: set[int], rows: np.ndarray, wrong: np.ndarray) -> None:
    """Note on which of the rows some score is out of range."""
    if wrong_rows:
        wrong_rows.difference_update(rows.tolist())
    if wrong.any():
        wrong_rows.update(rows[wrong].tolist())


def _put(wrong_rows: set[int], row: int, *, wrong: bool) -> None:
    if wrong:
        wrong_rows.add(row)
    else:
        wrong_rows.discard(row)


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

    A class gets answers when it is seen for the second time: one that never comes again costs
    nothing to keep.
    """

    def __init__(self, view: View, profile: Profile, budget_bytes: int = 1 << 28) -> None:
        self._view = view
        self._profile = profile
        self._budget_bytes = budget_bytes
        self._kept: OrderedDict[int, ClassAnswers | None] = OrderedDict()

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
        if key not in kept:
            kept[key] = None
            self._trim()
            return None
        answers = kept[key] = ClassAnswers(pod, self._view, self._profile)
        kept.move_to_end(key)
        self._trim()
        return answers

    def _trim(self) -> None:
        limit = max(4, self._budget_bytes // (BYTES_PER_ROW * self._view.nodes.capacity))
        while len(self._kept) > limit:
            self._kept.popitem(last=False)
