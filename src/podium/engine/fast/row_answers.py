"""What rules that look at one row at a time answered for every row, kept true as rows change.

`RowAnswers` holds, per row, the first verdict and the sum of the scores; the journal says which
rows changed since, and only those are evaluated again. It is shared by all pod classes that these
rules cannot tell apart (`Rule.row_key`): pods that differ in labels, claims or affinity only.
Totals are indexed by score when they are asked for, or by groups of rows and by score: the best
rows are found without a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.engine.fast.answer_matrix import answer_columns
from podium.engine.fast.block_rules import CODE, FITTING, SHIFT, block_rules
from podium.engine.fast.resource_memo import ResourceMemo
from podium.engine.fast.score_index import UNFIT, GroupIndex, ScoreIndex
from podium.engine.fast.score_table import (
    GroupTable,
    ScoreTable,
    SearchedScores,
    SearchedTable,
    TalliedTable,
)
from podium.engine.framework.rule import Scope
from podium.engine.pipelines.filtering import run_filters, run_filters_on_row
from podium.engine.pipelines.scoring import run_row_scores
from podium.engine.rows.rows import ManyRows, OneRow, as_array, as_int
from podium.engine.state.verdicts import FITS, histogram

if TYPE_CHECKING:
    from array import array
    from collections import Counter
    from collections.abc import Hashable, Sequence
    from collections.abc import Set as AbstractSet

    from podium.engine.fast.answer_matrix import AnswerColumns, AnswerMatrix
    from podium.engine.fast.block_rules import BlockRules
    from podium.engine.fast.compiled_rows import RowKernel, RowKernels
    from podium.engine.fast.score_table import GroupLayout, GroupLayouts
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Positioned
    from podium.engine.rows.row_groups import Grouping
    from podium.engine.rows.rows import Column, Flags
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View


NO_ROWS: frozenset[int] = frozenset()
#: An index has paid if it was kept for so many rounds with few changed rows.
WORTH_INDEXING = 50
#: With so many times more entries of the journal than rows that are evaluated one by one, it does
#: not pay to see which of them are about the same rows.
MOST_REPEATED = 2
#: Indexes by group are kept for so many groupings.
MOST_GROUPINGS = 8


class RowRules(NamedTuple):
    """Rules that look at one row at a time, in order."""

    #: Filters whose answers change with the node only.
    of_node: Sequence[Positioned]
    #: Filters that look at the pods of the row as well.
    of_pods: Sequence[Positioned]
    #: Scores that are final row by row.
    flat: Sequence[Weighted]


class RowAnswers:
    """The answers of some rules for some classes of pods, per row."""

    columns: AnswerColumns

    def __init__(
        self,
        pod: Incoming,
        view: View,
        profile: Profile,
        rules: RowRules,
        *,
        layouts: GroupLayouts,
        kernels: RowKernels,
        matrix: AnswerMatrix | None = None,
    ) -> None:
        """With a *matrix*, the answers are kept there, and brought up to date with others."""
        self.view = view
        self._kernels = kernels
        self._matrix = matrix
        self.line = self.asked = -1
        self._layouts = layouts
        self._tuning = profile.tuning
        self._highest = profile.highest_score
        self.of_node, self.of_pods, self.flat = rules
        used = (*(p.rule for p in rules.of_pods), *(each.priority for each in rules.flat))
        #: The position of the last filter.
        self.last_position = max((p.position for p in (*self.of_node, *self.of_pods)), default=-1)
        self._by_columns = any(rule.by_columns for rule in used)
        self.index: ScoreIndex | None = None
        #: None where the grouping tells too many rows apart.
        self._groups: dict[Grouping, GroupIndex | None] = {}
        #: How many nodes got which verdict, and how many were rejected at all.
        self._rejections: Counter[int] | None = None
        self._rejected = 0
        #: Whether a decision may have the counter, so that the next change is made to a copy.
        self._is_counter_shared = False
        #: How many times in a row only a few rows had changed.
        self._small_changes = 0
        #: How many times that must be before an index is made; more, if the last did not pay.
        self._rounds_to_index = self._tuning.steady_rounds
        #: How many times it had been when an index was last made.
        self._indexed_at = 0
        #: Rows on which some score is out of range: by the node alone; with its pods, if it fits.
        self._node_wrong: set[int] = set()
        self._wrong: set[int] = set()
        if matrix is not None:
            matrix.add(self)
        else:
            self._allocate()
        self.rebuild(pod)

    def _allocate(self) -> None:
        if self._matrix is not None:
            self._matrix.clear(self)
        else:
            self.columns = answer_columns(self.view.nodes.capacity)

    # Keeping up with the cluster ------------------------------------------------------------------

    def rebuild(self, pod: Incoming) -> None:
        """Evaluate every row."""
        view = self.view
        if len(self.columns.scores) != view.nodes.capacity:
            self._allocate()
        if self._matrix is not None:
            self._matrix.forget(self)
        self._node_wrong.clear()
        self._wrong.clear()
        self.epoch = view.journal.epoch
        #: Which extended resources devices serve; rules of single rows read that as well.
        self.served = view.catalog.device_classes.served_version
        self.seen = view.journal.rows.end
        self._node_changes = view.journal.node_changes
        self.index = self._rejections = None
        self._groups = {}
        rows = view.nodes.order
        self._feasible: tuple[np.ndarray | None, np.ndarray] = (None, rows)
        #: Facts of the feasible rows; they hold for every class of pods.
        self.memo: dict[Hashable, Any] = {}
        self._sort_scores(pod)
        by_resources = [p for p in self.of_pods if p.rule.scope(pod.cls) is Scope.RESOURCES]
        self._blocks = block_rules(pod, view, by_resources, self.scoring_pods, self._highest)
        self._resources = ResourceMemo(
            pod.cls, self.of_pods, self.scoring_pods, self._highest, self._blocks
        )
        #: The same as machine code, once that is loaded; None after nodes changed.
        self._kernel: RowKernel | None = None
        #: Filters on the pods of a row that look at more than its resource numbers.
        self._others = [p for p in self.of_pods if p.rule.scope(pod.cls) is not Scope.RESOURCES]
        self._evaluate_nodes(pod, rows)
        self._evaluate_pods(pod, rows)

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
        self.scoring_nodes = [w for w in differing if w.priority.scope(pod.cls) <= Scope.NODE]
        self.scoring_pods = [w for w in differing if w.priority.scope(pod.cls) > Scope.NODE]
        keys = [each.priority.answer_key(pod, self.view) for each in self.scoring_nodes]
        self._scoring = (self.constant, self.scoring_nodes, self.scoring_pods, keys)

    def refresh(self, pod: Incoming) -> None:
        """Evaluate the rows again that changed since the last time."""
        view = self.view
        log = view.journal.rows
        behind = self.seen - log.start
        served = view.catalog.device_classes.served_version
        if behind < 0 or self.epoch != view.journal.epoch or self.served != served:
            self.rebuild(pod)
            return
        entries = log.entries
        missed = len(entries) - behind
        if missed == 1 and entries[-1] >= 0 and not view.pods.unknown_nodes:
            # The usual case: one pod got a node since.
            self.seen += 1
            self._small_changes += 1
            self._evaluate_one(pod, entries[-1], node_changed=False)
        elif missed:
            since, news = self.seen, entries[behind:]
            self.seen += missed
            if self._has_compiled_answers(pod, news):
                self._keep_indexes(news)
                return
            if missed > self._tuning.few_changes:
                self._kernels.note_batch()
            if self._is_followed():
                self._follow(pod, since, news)
            else:
                self._catch_up(pod, news)
                self._node_changes = view.journal.node_changes
                if self._matrix is not None and missed > self._tuning.few_changes:
                    self._matrix.follow(self)

    @property
    def block_rules(self) -> BlockRules | None:
        """The rules on the pods of a row, if resource numbers are all that they look at."""
        return None if self._others else self._blocks

    def _have_only_pods_changed(self) -> bool:
        """Whether resource numbers are all that can have changed since the last time."""
        view = self.view
        return (
            self._node_changes == view.journal.node_changes
            and not view.pods.unknown_nodes
            and not self._wrong
        )

    def _has_compiled_answers(self, pod: Incoming, news: array[int]) -> bool:
        """Evaluate the rows of these entries of the journal by compiled code, if there is any."""
        if self._kernels.loops is None or self._blocks is None:
            return False
        if not self._have_only_pods_changed():
            return False
        if self._kernel is None:
            of_nodes = self.columns.node_scores
            differ = bool((of_nodes[self.view.nodes.order] != of_nodes[0]).any())
            self._kernel = self._kernels.kernel(self._blocks, nodes_differ=differ)
            if self._kernel is None:
                return False
        rows, verdicts = np.frombuffer(news, np.int64), self.columns.verdicts
        changed = self._kernel.changed(self.view, rows, self.columns.lines)
        if changed is None:
            return False
        if self._others:
            changed = self._rejected_by_others(pod, rows) | changed
        for row, before in changed.items():
            now = verdicts.item(row)
            if now != before:
                self.note_verdict(row, before & CODE, now & CODE)
        return True

    def _rejected_by_others(self, pod: Incoming, rows: np.ndarray) -> dict[int, int]:
        """Let the other filters reject some rows: those that they do, and the verdicts before."""
        verdicts, scores = self.columns.verdicts, self.columns.scores
        named = np.zeros(len(verdicts), np.bool_)
        named[rows] = True
        rows = named.nonzero()[0]  # each of them once
        fit = run_filters(pod, ManyRows(self.view, rows, {}), self._others)
        places = fit.codes.nonzero()[0]
        rows, given = rows[places], _packed(fit.codes[places], fit.positions[places])
        before = verdicts.take(rows)
        verdicts[rows], scores[rows] = np.minimum(before, given), UNFIT
        return dict(zip(rows.tolist(), before.tolist(), strict=True))

    def _is_followed(self) -> bool:
        """Whether the answers are kept in a matrix that follows the pods; no node changed."""
        matrix = self._matrix
        return matrix is not None and self._have_only_pods_changed() and matrix.follows(self)

    def _follow(self, pod: Incoming, since: int, news: array[int]) -> None:
        """Evaluate what the matrix has not seen yet, and keep the indexes if there are any."""
        matrix, log = self._matrix, self.view.journal.rows
        assert matrix is not None
        left = log.end - max(since, matrix.seen)
        if left > self._tuning.few_changes:
            if not matrix.catch_up():
                self._catch_up(pod, news)
                return
        elif left:
            for row in set(log.entries[-left:]):
                self._evaluate_one(pod, row, node_changed=False, indexed=False)
        self._keep_indexes(news)

    def _keep_indexes(self, news: array[int]) -> None:
        """Bring the indexes up to date with rows that were evaluated, or drop them if many were."""
        if len(news) > MOST_REPEATED * self._tuning.one_by_one:
            self._drop_indexes()
            return
        rows = set(news)
        if len(rows) > self._tuning.one_by_one:
            self._drop_indexes()
            return
        self._small_changes += 1
        if self.index is not None or self._groups:
            scores = self.columns.scores
            for row in rows:
                self._put(row, scores.item(row))

    def _put(self, row: int, total: int) -> None:
        """Bring the indexes up to date with the total of a row."""
        found = None if total == UNFIT else total
        if self.index is not None:
            self.index.put(row, found)
        if self._groups:
            for groups in self._groups.values():
                if groups is not None:
                    groups.put(row, found)

    def _catch_up(self, pod: Incoming, news: array[int]) -> None:
        """Evaluate the rows of these entries of the journal again."""
        view = self.view
        if min(news) < 0:
            # A node changed: what was the same for every row may not be so any more.
            before = self._scoring
            self._sort_scores(pod)
            if before != self._scoring:
                self.rebuild(pod)
                return
            self.memo = {}
            rows = {entry if entry >= 0 else ~entry for entry in news}
            nodes: AbstractSet[int] = {~entry for entry in news if entry < 0}
        else:
            rows, nodes = set(news), NO_ROWS
        if view.pods.unknown_nodes:
            # Rows with pods of an unknown node are in no order of nodes; rules never see them.
            rows -= view.pods.unknown_nodes
            nodes = nodes & rows
        if nodes and self._groups:
            self._check_groups(nodes)
        if len(rows) > self._tuning.one_by_one:
            self._evaluate_many(pod, rows, nodes)
        elif len(rows) > 1 and (self._by_columns or self._are_states_new(len(rows))):
            self._small_changes += 1
            self._evaluate_together(pod, rows, nodes)
        else:
            self._small_changes += 1
            for row in rows:
                self._evaluate_one(pod, row, node_changed=row in nodes)

    def _check_groups(self, nodes: AbstractSet[int]) -> None:
        """Keep the indexes by group whose rows are still in the same groups."""
        kept = self._groups.items()
        self._groups = {k: g for k, g in kept if g is not None and g.holds(nodes)}

    def _are_states_new(self, count: int) -> bool:
        """Whether so many rows are better evaluated as arrays: their states are not remembered."""
        memo = self._resources
        if memo.misses <= memo.hits:
            return False
        return count > self._tuning.one_by_one_if_new

    def _evaluate_many(self, pod: Incoming, rows: set[int], nodes: AbstractSet[int]) -> None:
        """Evaluate many rows as arrays; the indexes would cost more to keep than to make again."""
        self._drop_indexes()
        self._evaluate_together(pod, rows, nodes)

    def _drop_indexes(self) -> None:
        """Make the indexes again when there are calmer rounds."""
        if self.index is not None or self._groups:
            lasted = self._small_changes - self._indexed_at
            start = self._tuning.steady_rounds
            self._rounds_to_index = start if lasted >= WORTH_INDEXING else self._rounds_to_index * 2
            self.index = None
            self._groups = {}
        self._small_changes = 0

    def _evaluate_together(self, pod: Incoming, rows: set[int], nodes: AbstractSet[int]) -> None:
        """Evaluate some rows as arrays, and keep the counts, and the indexes if there are any."""
        changed = np.array([*rows], np.intp)
        before = self.columns.verdicts.take(changed)
        if nodes:
            self._evaluate_nodes(pod, np.fromiter(nodes, np.int64, len(nodes)))
        now, sums = self._evaluate_pods(pod, changed)
        differs = before != now
        if self.index is not None or self._groups:
            differs |= now == FITTING  # the score may be another one
        places = differs.nonzero()[0]
        if not len(places):
            return
        was, codes = before[places] & CODE, now[places] & CODE
        for each in zip(
            changed[places].tolist(),
            was.tolist(),
            codes.tolist(),
            sums[places].tolist(),
            strict=True,
        ):
            self._take_over(*each)

    def _take_over(self, row: int, before: int, code: int, total: int) -> None:
        """Bring the counts and the indexes up to date with the new answers of a row."""
        if code != before:
            self.note_verdict(row, before, code)
        if self.index is not None or self._groups:
            self._put(row, UNFIT if code else total)

    def note_verdict(self, row: int, before: int, code: int) -> None:
        """Bring the counts up to date: the verdict of a row may be another one."""
        if code != before:
            self._recount(row, before, code)
            if not code or not before:
                self._feasible = (None, self.columns.scores)

    def _evaluate_nodes(self, pod: Incoming, rows: np.ndarray) -> None:
        at = ManyRows(self.view, rows)
        fit = run_filters(pod, at, self.of_node)
        self.columns.node_verdicts[rows] = _packed(fit.codes, fit.positions)
        sums, wrong = run_row_scores(pod, at, self.scoring_nodes, highest=self._highest)
        self.columns.node_scores[rows] = as_array(sums) + self.constant
        self._kernel = None
        _mark(self._node_wrong, rows, wrong)

    def _evaluate_pods(self, pod: Incoming, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate some rows as arrays; their verdicts, and the sums of their scores."""
        verdicts, sums = self.columns.node_verdicts.take(rows), self.columns.node_scores.take(rows)
        if self._wrong:
            self._wrong.difference_update(rows.tolist())
        answers = self._blocks.answers(self.view, rows) if self._blocks else None
        if answers is not None:
            rejected, given = answers
            if rejected is not None:
                np.minimum(verdicts, rejected, out=verdicts)
            if self._others:
                fit = run_filters(pod, ManyRows(self.view, rows, {}), self._others)
                np.minimum(verdicts, _packed(fit.codes, fit.positions), out=verdicts)
            sums += given
        else:
            at = ManyRows(self.view, rows, {})
            fit = run_filters(pod, at, self.of_pods)
            np.minimum(verdicts, _packed(fit.codes, fit.positions), out=verdicts)
            self._add_scores(pod, at, verdicts, sums)
        sums[verdicts != FITTING] = UNFIT
        self.columns.verdicts[rows], self.columns.scores[rows] = verdicts, sums
        return verdicts, sums

    def _add_scores(
        self, pod: Incoming, at: ManyRows, verdicts: np.ndarray, sums: np.ndarray
    ) -> None:
        """Ask the rules for the scores of the rows that fit; others do not count."""
        places: np.ndarray | slice = slice(None)
        fits = verdicts == FITTING
        if not fits.all():
            places = fits.nonzero()[0]
            at = ManyRows(self.view, at.index[places], {})
        if len(at):
            total, wrong = run_row_scores(pod, at, self.scoring_pods, highest=self._highest)
            sums[places] += as_array(total)
            _mark(self._wrong, at.index, wrong)

    def _evaluate_one(
        self, pod: Incoming, row: int, *, node_changed: bool, indexed: bool = True
    ) -> None:
        """Evaluate one row in plain numbers; *indexed*: and keep the indexes."""
        columns = self.columns
        if node_changed:
            self._evaluate_node(pod, row)
        verdict, total, wrong = self._resources.answer(pod, self.view, row)
        verdict = min(verdict, columns.node_verdicts.item(row))
        code = verdict & CODE
        total += columns.node_scores.item(row)
        before = columns.verdicts.item(row) & CODE
        columns.verdicts[row] = verdict
        columns.scores[row] = UNFIT if code else total
        if wrong or self._wrong:
            _put(self._wrong, row, wrong=wrong and code == FITS)
        if indexed:
            self._take_over(row, before, code, total)
        elif code != before:
            self.note_verdict(row, before, code)

    def _evaluate_node(self, pod: Incoming, row: int) -> None:
        at = OneRow(self.view, row)
        code, position = run_filters_on_row(pod, at, self.of_node)
        self.columns.node_verdicts[row] = position << SHIFT | code
        score, out = run_row_scores(pod, at, self.scoring_nodes, highest=self._highest)
        self.columns.node_scores[row] = as_int(score) + self.constant
        self._kernel = None
        _put(self._node_wrong, row, wrong=bool(out))

    def _recount(self, row: int, before: int, now: int) -> None:
        counts = self._rejections
        if counts is None or not self.view.nodes.known[row]:
            return
        if self._is_counter_shared:
            self._is_counter_shared = False
            counts = self._rejections = counts.copy()
        if now:
            counts[now] += 1
            self._rejected += 1
        if before:
            counts[before] -= 1
            self._rejected -= 1
            if not counts[before]:
                del counts[before]

    # Answering ------------------------------------------------------------------------------------

    def has_scores(self) -> bool:
        """Whether the kept sums may be used: no score of a row that fits is out of range.

        Otherwise the attempt fails, and `run_scores` over the feasible rows says how.
        """
        if self._constant_wrong or self._wrong:
            return False
        if not self._node_wrong:
            return True
        return not any(self.columns.verdicts.item(row) == FITTING for row in self._node_wrong)

    def by_score(self, order: np.ndarray) -> ScoreIndex | ScoreTable | SearchedScores | None:
        """The feasible rows by score, in this order; None if some row is named twice.

        All totals are compared while many rows change between decisions.
        """
        index = self.index
        if index is None or index.order is not order:
            if len(order) != len(self.view.nodes.order):
                return None
            if self._small_changes < self._rounds_to_index:
                loops = self._kernels.loops
                if loops is None:
                    return ScoreTable(self.columns.scores.take(order), self._count())
                one_group = self._layouts.by(order, (), 1)
                assert one_group is not None
                return SearchedScores(one_group, self.columns.scores, self._count(), loops)
            self._indexed_at = self._small_changes
            index = self.index = ScoreIndex(order, self.columns.scores)
            if len(index.position_of) != len(order):
                self.index = None
        return self.index

    def _count(self) -> int:
        """On how many nodes the pod fits."""
        if self._rejections is None:
            self.rejections()
        return len(self.view.nodes.order) - self._rejected

    def by_group(
        self, order: np.ndarray, grouping: Grouping
    ) -> GroupIndex | GroupTable | TalliedTable | SearchedTable | None:
        """The feasible rows by group and by score; None as for `by_score`.

        None as well if the grouping tells so many rows apart that it does not pay.
        """
        keys, tallies = grouping
        if grouping in self._groups:
            found = self._groups[grouping]
            if found is None or found.order is order:
                return found
        if len(order) != len(self.view.nodes.order):
            return None
        most = len(order) // self._tuning.min_reduction
        if self._small_changes < self._rounds_to_index:
            layout = self._layouts.by(order, keys, most)
            return None if layout is None else self._table(layout, tallies)
        self._indexed_at = self._small_changes
        if len(self._groups) >= MOST_GROUPINGS:
            self._groups.clear()
        sizes = (len(self.view.nodes.label_column(key).values) for key in keys)
        made: GroupIndex | None = None
        if max(sizes, default=0) <= most + 1:
            made = GroupIndex(ManyRows(self.view, order), grouping, self.columns.scores)
            if len(made) > most or len(made.position_of) != len(order):
                made = None
        self._groups[grouping] = made
        return made

    def _table(
        self, layout: GroupLayout, tallies: Sequence[Tally]
    ) -> GroupTable | TalliedTable | SearchedTable:
        """The groups of a layout with their best rows, for one decision."""
        scores, count, loops = self.columns.scores, self._count(), self._kernels.loops
        if loops is not None:
            return SearchedTable(layout, tallies, scores, count, loops)
        if tallies:
            return TalliedTable(layout, tallies, scores, count)
        return GroupTable(layout, scores, count)

    def rejections(self) -> Counter[int]:
        """How many nodes were rejected with which verdict by single rows.

        The counter stays as it is: later changes are made to a copy.
        """
        self._is_counter_shared = True
        if self._rejections is None:
            self._rejections = histogram(self.columns.verdicts[self.view.nodes.order] & CODE)
            self._rejected = self._rejections.total()
        return self._rejections

    def feasible(self, order: np.ndarray) -> np.ndarray:
        """The rows that fit, in order; kept while none changes."""
        if self._feasible[0] is not order:
            self._feasible = (order, order[self.columns.scores.take(order) != UNFIT])
            self.memo = {}
        return self._feasible[1]

    def memo_of(self, rows: np.ndarray) -> dict[Hashable, Any] | None:
        """Where facts of these rows may be kept; None if they are not the feasible rows."""
        return self.memo if rows is self._feasible[1] else None

    def verdicts(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Verdict codes, and the positions of the rules that gave them, in this order."""
        found = self.columns.verdicts.take(order)
        return (found & CODE).astype(np.int32), (found >> SHIFT).astype(np.int16)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """The weighted sums of the scores of these rows."""
        found: np.ndarray = self.columns.scores.take(rows)
        return found


def _mark(
    wrong_rows: set[int],
    rows: np.ndarray,
    wrong: Flags[Column] | bool,  # noqa: FBT001 - a plain False stands for all rows
) -> None:
    """Note on which of the rows some score is out of range."""
    if wrong_rows:
        wrong_rows.difference_update(rows.tolist())
    if wrong is not False:
        flags = np.broadcast_to(np.asarray(wrong), rows.shape)
        wrong_rows.update(rows[flags].tolist())


def _packed(codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """A number per row that holds the code and the position of the rule that gave it."""
    found: np.ndarray = positions.astype(np.int64) << SHIFT
    found |= codes
    return found


def _put(wrong_rows: set[int], row: int, *, wrong: bool) -> None:
    if wrong:
        wrong_rows.add(row)
    else:
        wrong_rows.discard(row)
