"""Answers of many classes of pods per row, brought up to date for all of them together.

Where hundreds of classes are decided in turn, two rows change with every decision and each class
sees them much later, in a batch of its own. NumPy takes about as long for two rows as for a
hundred, so it pays to evaluate a few changed rows for all classes in the same calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from podium.engine.fast.block_rules import CODE, FITTING
from podium.engine.fast.score_index import UNFIT

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.fast.block_rules import BlockRules
    from podium.engine.state.view import View

#: The number of columns of a class of pods.
PARTS = 4
#: So many lines are made at first.
FIRST_LINES = 4
#: Lines that were not asked for during so many rounds are left out of the next ones.
MOST_IDLE_ROUNDS = 512
#: How often it is looked which ones these are, in rounds.
ROUNDS_TO_LOOK = 128


class AnswerColumns:
    """The answers of one class of pods: a number per row in each column."""

    __slots__ = ("lines", "node_scores", "node_verdicts", "scores", "verdicts")

    def __init__(self, lines: np.ndarray) -> None:
        #: All columns as one array.
        self.lines = lines
        #: Verdicts of the rules on nodes, and of all rules, each with the position of its rule.
        #: The sum of the scores that depend on the node, and of all; `UNFIT` if the pod does not
        #: fit on the row.
        self.node_verdicts, self.verdicts, self.node_scores, self.scores = lines

    def clear(self) -> None:
        """Make them those of a class about which nothing was asked yet."""
        self.node_verdicts[:] = self.verdicts[:] = FITTING
        self.node_scores[:] = 0
        self.scores[:] = UNFIT


def answer_columns(size: int) -> AnswerColumns:
    """Columns of a class about which nothing was asked yet."""
    made = AnswerColumns(np.empty((PARTS, size), np.int64))
    made.clear()
    return made


class Holder(Protocol):
    """Answers of a class of pods whose columns are a line of the matrix."""

    #: The number of its line.
    line: int
    #: The round in which it was last asked.
    asked: int
    columns: AnswerColumns

    @property
    def block_rules(self) -> BlockRules | None:
        """The rules that depend on the pods of a row."""

    def note_verdict(self, row: int, before: int, code: int) -> None:
        """The verdict of a row became another one."""


class _Stack:
    """Holders whose rules answer together."""

    __slots__ = ("holders", "offsets", "rules")

    def __init__(self, holders: Sequence[Holder], rules: BlockRules, capacity: int) -> None:
        self.holders = holders
        self.rules = rules
        #: Where the line of each begins in the matrix.
        self.offsets = np.array([[each.line * PARTS * capacity] for each in holders], np.intp)


class AnswerMatrix:
    """The answers of many classes of pods, a line for each.

    A line is *followed* while it takes part in `catch_up`: then it is true for all entries of the
    journal before `seen`.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._capacity = 0
        self._lines = 0
        #: The columns of all lines; and each column from that of the first line on, without a
        #: border between lines.
        self._columns = np.empty((0, PARTS, 0), np.int64)
        self._flat: list[np.ndarray] = []
        self._free: list[int] = []
        self._holders: dict[int, Holder] = {}
        self._followed: dict[int, Holder] = {}
        self._stacks: list[_Stack] | None = None
        self._epoch = -1
        self.seen = 0
        self._round = 0

    # Lines ----------------------------------------------------------------------------------------

    def add(self, holder: Holder) -> None:
        """Give answers a line."""
        if not self._free:
            more = max(FIRST_LINES, self._lines // 2)
            self._free = list(range(self._lines, self._lines + more))
            self._resize(self._lines + more)
        holder.line = self._free.pop()
        self._holders[holder.line] = holder
        self.clear(holder)

    def clear(self, holder: Holder) -> None:
        """Make the line of a holder one about which nothing was asked, of as many rows as now."""
        if self._capacity != self._view.nodes.capacity:
            self._resize(self._lines)
        self._bind(holder)
        holder.columns.clear()

    def _bind(self, holder: Holder) -> None:
        holder.columns = AnswerColumns(self._columns[holder.line])

    def drop(self, holder: Holder) -> None:
        """Take back the line of a holder that is not asked any more."""
        del self._holders[holder.line]
        self.forget(holder)
        self._free.append(holder.line)
        holder.columns = answer_columns(0)

    def _resize(self, lines: int) -> None:
        """Make room for more lines, or for more rows: then no line is true any more."""
        capacity = self._view.nodes.capacity
        columns = np.empty((lines, PARTS, capacity), np.int64)
        grown = capacity == self._capacity
        if grown:
            columns[: self._lines] = self._columns
        else:
            self._start_over()
        self._columns, self._lines, self._capacity = columns, lines, capacity
        flat = columns.reshape(-1)
        self._flat = [flat[part * capacity :] for part in range(PARTS)]
        if grown:
            for holder in self._holders.values():
                self._bind(holder)

    # Following the journal ------------------------------------------------------------------------

    def follow(self, holder: Holder) -> None:
        """Keep a line true from now on; it must be true now."""
        rules = holder.block_rules
        if rules is None:
            return
        if self._epoch != self._view.journal.epoch:
            self._start_over()
        holder.asked = self._round
        self._followed[holder.line] = holder
        self._stacks = None

    def forget(self, holder: Holder) -> None:
        """Do not keep a line true any more."""
        if self._followed.pop(holder.line, None) is not None:
            self._stacks = None

    def follows(self, holder: Holder) -> bool:
        """Whether a line is kept true; it is being asked now."""
        if holder.line not in self._followed or self._epoch != self._view.journal.epoch:
            return False
        holder.asked = self._round
        return True

    def _start_over(self) -> None:
        self._followed, self._stacks = {}, None
        self._epoch, self.seen = self._view.journal.epoch, self._view.journal.rows.end

    def catch_up(self) -> bool:
        """Evaluate the rows that changed since the last time; False if rules must be asked."""
        log = self._view.journal.rows
        news = log.since(self.seen)
        self.seen = log.end
        if news is None:
            self._start_over()
            return False
        self._round += 1
        if self._round % ROUNDS_TO_LOOK == 0:
            self._leave_out()
        rows = np.array([*{entry if entry >= 0 else ~entry for entry in news}], np.intp)
        if self._stacks is None:
            self._stacks = self._stacked()
        for stack in self._stacks:
            if not self._evaluate(stack, rows):
                self._start_over()
                return False
        return True

    def _leave_out(self) -> None:
        """Do not follow the lines that were not asked for a long time."""
        limit = self._round - MOST_IDLE_ROUNDS
        idle = [each for each in self._followed.values() if each.asked < limit]
        for each in idle:
            self.forget(each)

    def _stacked(self) -> list[_Stack]:
        """The lines that are followed, by what their rules have in common."""
        alike: dict[Hashable, list[tuple[Holder, BlockRules]]] = {}
        for holder in self._followed.values():
            rules = holder.block_rules
            assert rules is not None
            alike.setdefault(rules.alike, []).append((holder, rules))
        return [
            _Stack(
                [holder for holder, _ in pairs],
                pairs[0][1].stacked(self._view, [rules for _, rules in pairs]),
                self._capacity,
            )
            for pairs in alike.values()
        ]

    def _evaluate(self, stack: _Stack, rows: np.ndarray) -> bool:
        """Evaluate rows for some lines together; False if rules must be asked."""
        answers = stack.rules.answers(self._view, rows)
        if answers is None:
            return False
        rejected, given = answers
        node_verdicts, verdicts, node_scores, scores = self._flat
        places = stack.offsets + rows
        now, sums = node_verdicts.take(places), node_scores.take(places)
        if rejected is not None:
            np.minimum(now, rejected, out=now)
        sums += given
        sums[now != FITTING] = UNFIT
        before = verdicts.take(places)
        verdicts[places], scores[places] = now, sums
        lines, columns = (before != now).nonzero()
        if len(lines):
            was, codes = before[lines, columns] & CODE, now[lines, columns] & CODE
            for line, row, old, new in zip(
                lines.tolist(), rows[columns].tolist(), was.tolist(), codes.tolist(), strict=True
            ):
                stack.holders[line].note_verdict(row, old, new)
        return True
