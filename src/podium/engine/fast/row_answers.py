"""What rules that look at one row at a time answered for every row, kept true as rows change.

`RowAnswers` follows the journal: the rows that changed since the last decision are evaluated again
in one call, and written to `AnswerColumns`. It is shared by all pod classes that these rules cannot
tell apart (`Rule.row_key`): pods that differ in labels, claims or affinity only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.fast.answer_columns import FITTING, SHIFT, AnswerColumns
from podium.engine.fast.score_index import UNFIT
from podium.engine.framework.rule import Rule, Scope
from podium.engine.pipelines.filtering import run_filters, run_filters_on_row
from podium.engine.pipelines.scoring import run_row_scores
from podium.engine.rows.resource_block import resource_block, row_numbers, row_state
from podium.engine.rows.rows import (
    MOST_IN_TABLE,
    ManyRows,
    OneRow,
    as_array,
    as_int,
    fill_table,
    lowest,
)
from podium.engine.state.journal import Follower

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.framework.plan import RowRules
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Positioned
    from podium.engine.rows.resource_block import BlockFilter, BlockScore
    from podium.engine.rows.row_groups import GroupLayouts
    from podium.engine.rows.rows import Column, Flags
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


NO_ROWS: frozenset[int] = frozenset()
#: Answers are kept for so many states of a row; when there are more, all are dropped.
MOST_STATES = 4096

#: Verdict with the position of the rule that gave it, as in `AnswerColumns`; sum of scores; whether
#: one of them is out of range.
RowAnswer = tuple[int, int, bool]


class RowAnswers:
    """The answers of some rules for some classes of pods, per row."""

    #: Of the rules on nodes alone: verdicts with the position of the rule, and sums of scores.
    _node_verdicts: np.ndarray
    _node_scores: np.ndarray
    _by_numbers: dict[Hashable, RowAnswer] | None

    def __init__(
        self, pod: Incoming, view: View, profile: Profile, rules: RowRules, layouts: GroupLayouts
    ) -> None:
        self.view = view
        self._highest = profile.highest_score
        self._one_by_one = profile.tuning.one_by_one
        self._of_node, self._of_pods, self._flat = rules
        used = (*(p.rule for p in rules.of_pods), *(each.priority for each in rules.flat))
        #: The position of the last filter.
        self.last_position = max((p.position for p in (*self._of_node, *self._of_pods)), default=-1)
        if any(rule.by_columns for rule in used):
            self._one_by_one = min(1, self._one_by_one)
        self.columns = AnswerColumns(view, layouts, profile.tuning)
        self._follower = Follower(view.journal.rows, view.journal)
        #: Rows on which some score is out of range: by the node alone; with its pods, if it fits.
        self._node_wrong: set[int] = set()
        self._wrong: set[int] = set()
        self.rebuild(pod)

    # Keeping up with the cluster ------------------------------------------------------------------

    def refresh(self, pod: Incoming) -> None:
        """Evaluate the rows again that changed since the last time."""
        view = self.view
        news = self._follower.news()
        if news is None or (self._keyed and self._keys != self._ask_keys(pod)):
            self.rebuild(pod)
            return
        if not news:
            return
        if len(news) == 1 and (row := news[0]) >= 0 and not view.pods.unknown_nodes:
            # The usual case: one pod got a node since.
            verdict, total = self.evaluate_row(pod, row)
            self.columns.start_round(1)
            self.columns.write_row(row, verdict, total)
            return
        rows, nodes = set(news), NO_ROWS
        if min(rows) < 0:
            # A node changed: what was the same for every row may not be so any more.
            before = self._scoring
            self._sort_scores(pod)
            if before != self._scoring:
                self.rebuild(pod)
                return
            nodes = frozenset(~entry for entry in rows if entry < 0)
            rows = {entry for entry in rows if entry >= 0} | nodes
        if view.pods.unknown_nodes:
            # Rows with pods of an unknown node are in no order of nodes; rules never see them.
            rows -= view.pods.unknown_nodes
            nodes &= rows
        if rows:
            self._update(pod, rows, nodes)

    def _update(self, pod: Incoming, rows: set[int], nodes: frozenset[int]) -> None:
        """Evaluate some rows, on some of which the node changed as well."""
        columns = self.columns
        columns.start_round(len(rows))
        if nodes:
            columns.note_nodes(nodes)
            self._evaluate_nodes(pod, np.fromiter(nodes, np.intp, len(nodes)))
        if len(rows) > self._one_by_one:
            changed = np.fromiter(rows, np.intp, len(rows))
            columns.write(changed, *self.evaluate(pod, changed))
        else:
            for row in rows:
                columns.write_row(row, *self.evaluate_row(pod, row))

    def rebuild(self, pod: Incoming) -> None:
        """Evaluate every row."""
        view = self.view
        self._follower.start_over()
        self._node_wrong.clear()
        self._wrong.clear()
        self._sort_scores(pod)
        cls = pod.cls
        #: Filters on the pods of a row that look at its resource numbers, and those that look at
        #: more than these.
        self._by_resources = [p for p in self._of_pods if p.rule.scope(cls) is Scope.RESOURCES]
        self._others: Sequence[Positioned] = [
            p for p in self._of_pods if p.rule.scope(cls) is not Scope.RESOURCES
        ]
        self._blocks = block_rules(pod, view, self._by_resources, self._scoring_pods, self._highest)
        scopes = [each.priority.scope(cls) for each in self._scoring_pods]
        #: Answers of these filters and of the scores by resource numbers; None where some score
        #: looks at more.
        self._by_numbers = {} if all(each is Scope.RESOURCES for each in scopes) else None
        size = view.nodes.capacity
        self._node_verdicts = np.full(size, FITTING, np.int64)
        self._node_scores = np.zeros(size, np.int64)
        self.columns.start_over()
        rows = view.nodes.order
        self._evaluate_nodes(pod, rows)
        self.columns.write(rows, *self.evaluate(pod, rows))

    def _sort_scores(self, pod: Incoming) -> None:
        """Which flat scores differ between rows, and the sum of what the others give to all."""
        known = [(each, each.priority.everywhere(pod, self.view)) for each in self._flat]
        same = [(each, found.score) for each, found in known if found is not None]
        self._constant = sum(each.weight * score for each, score in same)
        highest = self._highest
        self._constant_wrong = highest is not None and any(
            not 0 <= score <= highest for _, score in same
        )
        differing = [each for each, found in known if found is None]
        self._scoring_nodes = [w for w in differing if w.priority.scope(pod.cls) <= Scope.NODE]
        self._scoring_pods = [w for w in differing if w.priority.scope(pod.cls) > Scope.NODE]
        self._scoring = (self._constant, self._scoring_nodes, self._scoring_pods)
        # A rule beyond the row that looks at its own row now has a context instead of a key.
        of_pods = [each.rule for each in self._of_pods if each.rule.scope(pod.cls).of_row]
        of_node = [each.rule for each in self._of_node]
        rules = (*of_node, *of_pods, *(each.priority for each in differing))
        self._keyed = [
            rule
            for rule in rules
            if type(rule).answer_key is not Rule.answer_key and rule.watched(pod.cls)
        ]
        #: What answers depend on besides the row.
        self._keys = self._ask_keys(pod)

    def _ask_keys(self, pod: Incoming) -> list[Hashable]:
        return [rule.answer_key(pod, self.view) for rule in self._keyed]

    # Evaluating -----------------------------------------------------------------------------------

    def _evaluate_nodes(self, pod: Incoming, rows: np.ndarray) -> None:
        """Evaluate and keep the part of the answers that depends on the node alone."""
        at = ManyRows(self.view, rows)
        fit = run_filters(pod, at, self._of_node)
        self._node_verdicts[rows] = _packed(fit.codes, fit.positions)
        sums, wrong = run_row_scores(pod, at, self._scoring_nodes, highest=self._highest)
        self._node_scores[rows] = as_array(sums) + self._constant
        _mark(self._node_wrong, rows, wrong)

    def evaluate(self, pod: Incoming, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The verdicts of some rows with the positions of their rules, and the sums of scores."""
        verdicts, sums = self._node_verdicts.take(rows), self._node_scores.take(rows)
        if self._wrong:
            self._wrong.difference_update(rows.tolist())
        answers = self._blocks.answers(self.view, rows) if self._blocks else None
        if answers is not None:
            rejected, given = answers
            if rejected is not None:
                np.minimum(verdicts, rejected, out=verdicts)
            sums += given
            filters = self._others
        else:
            filters = self._of_pods
        if filters:
            fit = run_filters(pod, ManyRows(self.view, rows, {}), filters)
            np.minimum(verdicts, _packed(fit.codes, fit.positions), out=verdicts)
        if answers is None:
            self._add_scores(pod, rows, verdicts, sums)
        sums[verdicts != FITTING] = UNFIT
        return verdicts, sums

    def _add_scores(
        self, pod: Incoming, rows: np.ndarray, verdicts: np.ndarray, sums: np.ndarray
    ) -> None:
        """Ask the rules for the scores of the rows that fit; others do not count."""
        places: np.ndarray | slice = slice(None)
        fits = verdicts == FITTING
        if not fits.all():
            places = fits.nonzero()[0]
            rows = rows[places]
        if len(rows):
            at = ManyRows(self.view, rows, {})
            total, wrong = run_row_scores(pod, at, self._scoring_pods, highest=self._highest)
            sums[places] += as_array(total)
            _mark(self._wrong, rows, wrong)

    def evaluate_row(self, pod: Incoming, row: int) -> tuple[int, int]:
        """The same of one row, in plain numbers.

        Many rows have been in the same state before: nodes of one size with as many equal pods. The
        rules that read nothing but resource numbers are asked once for each state.
        """
        verdict, total = self._node_verdicts.item(row), self._node_scores.item(row)
        known = self._by_numbers
        state = row_state(self.view, row) if known is not None else None
        answer = None if known is None else known.get(state)
        if answer is None:
            answer = self._of_numbers(pod, row)
            if known is not None:
                if len(known) >= MOST_STATES:
                    known.clear()
                known[state] = answer
        rejected, given, wrong = answer
        if self._others:
            code, position = run_filters_on_row(pod, OneRow(self.view, row), self._others)
            rejected = min(rejected, position << SHIFT | code)
        verdict = min(verdict, rejected)
        if wrong and verdict == FITTING:
            self._wrong.add(row)
        elif self._wrong:
            self._wrong.discard(row)
        return verdict, total + given if verdict == FITTING else UNFIT

    def _of_numbers(self, pod: Incoming, row: int) -> RowAnswer:
        """The answer of the filters on resource numbers, and of the scores, on one row."""
        found = self._blocks.answer_on(self.view, row) if self._blocks is not None else None
        if found is not None:
            return (*found, False)
        at = OneRow(self.view, row)
        code, position = run_filters_on_row(pod, at, self._by_resources)
        scores, wrong = run_row_scores(pod, at, self._scoring_pods, highest=self._highest)
        return position << SHIFT | code, as_int(scores), bool(wrong)

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


class BlockRules:
    """The filter and the scores of one class of pods that depend on the resource numbers of a row.

    Made where there are no other rules that depend on the pods of a row, and all of these rules
    have a way to read a block.
    """

    __slots__ = ("_filter", "_held", "_position", "_scores", "_verdict_of_bits", "_verdicts")

    def __init__(
        self,
        view: View,
        position: int,
        rule: BlockFilter | None,
        scores: Sequence[tuple[int, BlockScore]],
    ) -> None:
        """The filter with its position, and the scores with their weights."""
        #: For which nodes `holds` was last found out, and what.
        self._held = (-1, -1), False
        self._filter, self._position, self._scores = rule, position, scores
        self._verdicts = view.verdicts
        #: The number of a verdict by the bits of its reasons; -1 where it is not known yet.
        self._verdict_of_bits = np.full(1 << (len(rule.reasons) if rule else 0), -1, np.int64)
        self._verdict_of_bits[0] = FITTING

    def answers(
        self, view: View, rows: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | int] | None:
        """Verdicts of some rows (None: all fit) and sums of scores; None if rules must be asked."""
        if not self._holds(view):
            return None
        block = resource_block(view, rows)
        if block is None:
            return None
        bits = self._filter.bits(block) if self._filter is not None else None
        sums: np.ndarray | int = 0
        for weight, score in self._scores:
            given = score.scores(block)
            if weight != 1:
                given *= weight
            sums = given if isinstance(sums, int) else np.add(sums, given, out=sums)
        return None if bits is None else self._verdicts_of(bits), sums

    def _holds(self, view: View) -> bool:
        """Whether the scores may be used, as the nodes are now."""
        now = (view.journal.epoch, view.journal.node_changes)
        if self._held[0] != now:
            self._held = now, all(score.holds(view) for _, score in self._scores)
        return self._held[1]

    def answer_on(self, view: View, row: int) -> tuple[int, int] | None:
        """Verdict and sum of scores of one row; None if rules must be asked."""
        if not self._holds(view):
            return None
        numbers = row_numbers(view, row)
        if numbers is None:
            return None
        bits = self._filter.bits_on(numbers) if self._filter is not None else 0
        total = 0
        for weight, score in self._scores:
            total += score.score_on(numbers) * weight
        if not bits:
            return FITTING, total
        verdict = self._verdict_of_bits.item(bits)
        return verdict if verdict >= 0 else self._verdicts_of(np.array([bits])).item(), total

    def _verdicts_of(self, bits: np.ndarray) -> np.ndarray:
        found = self._verdict_of_bits.take(bits)
        if lowest(found, None) < 0:
            rule, position = self._filter, self._position
            assert rule is not None
            fill_table(self._verdicts, rule.name, rule.reasons, bits[found < 0])
            codes = self._verdicts.table(rule.name, rule.reasons)
            known = np.flatnonzero(codes > 0)
            self._verdict_of_bits[known] = position << SHIFT | codes[known].astype(np.int64)
            found = self._verdict_of_bits.take(bits)
        return found


def block_rules(
    pod: Incoming,
    view: View,
    filters: Sequence[Positioned],
    weighted: Sequence[Weighted],
    highest: int | None,
) -> BlockRules | None:
    """The rules that depend on the pods of a row, if blocks are all that they need."""
    if len(filters) > 1:
        return None
    rule = filters[0].rule.of_block(pod, view) if filters else None
    if filters and (rule is None or len(rule.reasons) > MOST_IN_TABLE):
        return None
    scores = [(each.weight, each.priority.of_block(pod, view)) for each in weighted]
    made = [(weight, score) for weight, score in scores if score is not None]
    if len(made) < len(scores) or (not made and not filters):
        return None
    if highest is not None and any(score.highest > highest for _, score in made):
        return None
    return BlockRules(view, filters[0].position if filters else 0, rule, made)
