"""Rows evaluated and compared in machine code, where the extra `compiled` (numba) is installed.

With hundreds of classes of pods in turn, hundreds of rows change between two decisions about one of
them. NumPy needs dozens of calls for each batch, and its answers are the reference: tests compare
both. To import and load what numba has compiled takes some tenths of a second and a hundred MiB, so
that is done when there was much to evaluate, and never for a few pods.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.engine.fast.score_index import UNFIT
from podium.engine.fast.score_loops import best_by_group, split_groups
from podium.engine.rows.resource_block import LARGEST
from podium.engine.rules.resources import v1_36_numbers as number_layout
from podium.engine.rules.resources.v1_36_numbers import (
    FORMULAS,
    balance_change_score,
    evaluate_rows,
    least_allocated_score,
    missing_resources,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.engine.fast.block_rules import BlockRules
    from podium.engine.state.view import View

#: The scores that `evaluate_rows` knows, in order, with numbers for each that is not used.
NO_SCORES: dict[Callable[..., int], Sequence[int]] = {
    least_allocated_score: (0, 0, 1, 1),
    balance_change_score: (0, 0),
}
#: Where nothing has changed.
NO_ENTRIES = np.zeros(0, np.int64)


class Loops(NamedTuple):
    """The loops over rows, as machine code or as Python."""

    evaluate: Callable[..., Any]
    best: Callable[..., Any]
    split: Callable[..., Any]


#: The same loops as Python.
PLAIN_LOOPS = Loops(evaluate_rows, best_by_group, split_groups)


@cache
def compiled_loops() -> Loops | None:
    """The loops as machine code, compiled when they are first called; None without numba."""
    try:
        import numba  # noqa: PLC0415 - only where there is much to evaluate
        from numba.extending import register_jitable  # noqa: PLC0415
    except ImportError:
        return None
    for formula in FORMULAS:
        register_jitable(formula)
    try:
        return Loops(*map(numba.njit(cache=True, error_model="numpy"), PLAIN_LOOPS))
    except RuntimeError:  # there is no folder to keep the machine code in
        return Loops(*map(numba.njit(error_model="numpy"), PLAIN_LOOPS))


class RowKernels:
    """Compiled code for all answers of one cache, and the numbers of all rows as that reads them.

    Side by side, or to read a row would take as many accesses to memory as there are numbers.
    """

    def __init__(self, batches_to_load: int) -> None:
        """After so many batches compiled code is loaded."""
        self._batches_left = batches_to_load
        self.loops: Loops | None = None
        #: Where `evaluate_rows` lists the rows whose verdict changed.
        self.changed = np.empty((0, 2), np.int64)
        self._table = np.empty((0, 0), np.int64)
        #: The epoch of the table, and how much of the journal it has seen.
        self._epoch = self._seen = -1

    def note_batch(self) -> None:
        """Take note that a batch of rows was evaluated without compiled code."""
        self._batches_left -= 1
        if not self._batches_left:
            self.loops = compiled_loops()

    def table(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all rows side by side, and the entries of the journal to copy first."""
        journal, pods, nodes = view.journal, view.pods.numbers, view.nodes.numbers
        news = journal.rows.since(self._seen) if self._epoch == journal.epoch else None
        if news is None or len(self._table) != view.nodes.capacity:
            self._table = np.ascontiguousarray(np.concatenate([pods, nodes]).T)
        self._epoch, self._seen = journal.epoch, journal.rows.end
        changed = np.frombuffer(news, np.int64) if news else NO_ENTRIES
        return self._table, changed

    def kernel(self, rules: BlockRules, *, nodes_differ: bool) -> RowKernel | None:
        """These rules as machine code; None if it is not loaded, or the rules are others.

        *nodes_differ*: in the sums of the scores that depend on the node alone.
        """
        if self.loops is None:
            return None
        return row_kernel(rules, self, self.loops, nodes_differ=nodes_differ)


class RowKernel:
    """The rules of one class of pods on resource numbers, as machine code.

    It holds as long as the nodes stay the same.
    """

    __slots__ = ("_kernels", "_loops", "_numbers", "_rules")

    def __init__(
        self, rules: BlockRules, kernels: RowKernels, loops: Loops, numbers: np.ndarray
    ) -> None:
        """*numbers* are the rules as `evaluate_rows` takes them."""
        self._rules, self._kernels, self._loops = rules, kernels, loops
        self._numbers = numbers

    def changed(self, view: View, rows: np.ndarray, columns: np.ndarray) -> dict[int, int] | None:
        """Evaluate rows: those with another verdict, and the verdict before.

        *columns* are the lines of `AnswerColumns`. None if rules must be asked about all rows.
        """
        kernels, rules = self._kernels, self._rules
        if not rules.holds(view):
            return None
        changed = kernels.changed
        if len(changed) < len(rows):
            changed = kernels.changed = np.empty((2 * len(rows), 2), np.int64)
        table, newer = kernels.table(view)
        count = self._loops.evaluate(
            rows,
            table,
            newer,
            view.pods.numbers,
            view.nodes.numbers,
            self._numbers,
            rules.verdict_of_bits,
            columns,
            changed,
        )
        if count < 0:
            return None
        return dict(changed[:count].tolist()) if count else {}


def row_kernel(
    rules: BlockRules, kernels: RowKernels, loops: Loops, *, nodes_differ: bool
) -> RowKernel | None:
    """The rules with compiled code; None if there are others than `evaluate_rows` knows."""
    native = rules.filter
    if native is None or native.formula is not missing_resources:
        return None
    given = {each.formula: (weight, each.numbers) for weight, each in rules.scores}
    if len(given) < len(rules.scores) or not given.keys() <= NO_SCORES.keys():
        return None
    weights, wanted = zip(
        *(given.get(formula, (0, nothing)) for formula, nothing in NO_SCORES.items()), strict=True
    )
    numbers = np.zeros(number_layout.RULES, np.int64)
    numbers[0] = len(native.numbers)
    numbers[number_layout.AMOUNTS :][: len(native.numbers)] = native.numbers
    numbers[number_layout.LEAST : number_layout.BALANCE] = wanted[0]
    numbers[number_layout.BALANCE : number_layout.WEIGHTS] = wanted[1]
    numbers[number_layout.WEIGHTS : number_layout.LARGEST] = weights
    numbers[number_layout.LARGEST :] = LARGEST, UNFIT, nodes_differ
    return RowKernel(rules, kernels, loops, numbers)
