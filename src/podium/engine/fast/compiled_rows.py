"""Changed rows evaluated in machine code, where the extra `compiled` (numba) is installed.

With hundreds of classes of pods in turn, hundreds of rows change between two decisions about one of
them. NumPy needs dozens of calls for each batch, and its answers are the reference: tests compare
both. To import and load what numba has compiled takes some tenths of a second and a hundred MiB, so
that is done when there was much to evaluate, and never for a few pods.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.fast.score_index import UNFIT
from podium.engine.rows.resource_block import LARGEST
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


@cache
def compiled_evaluation() -> Callable[..., int] | None:
    """`evaluate_rows` as machine code; None without numba. Compiled when it is first called."""
    try:
        import numba  # noqa: PLC0415 - only where there is much to evaluate
        from numba.extending import register_jitable  # noqa: PLC0415
    except ImportError:
        return None
    for formula in FORMULAS:
        register_jitable(formula)
    try:
        found: Callable[..., int] = numba.njit(cache=True, error_model="numpy")(evaluate_rows)
    except RuntimeError:  # there is no folder to keep the machine code in
        found = numba.njit(error_model="numpy")(evaluate_rows)
    return found


class RowKernels:
    """Decides when compiled code is loaded, for all answers of one cache."""

    def __init__(self, batches_to_load: int) -> None:
        """After so many batches compiled code is loaded."""
        self._batches_left = batches_to_load
        self._evaluate: Callable[..., int] | None = None
        #: Where `evaluate_rows` lists the rows whose verdict changed.
        self.changed = np.empty((0, 2), np.int64)

    @property
    def is_loaded(self) -> bool:
        """Whether rows are evaluated by compiled code."""
        return self._evaluate is not None

    def note_batch(self) -> None:
        """Take note that a batch of rows was evaluated without compiled code."""
        self._batches_left -= 1
        if not self._batches_left:
            self._evaluate = compiled_evaluation()

    def kernel(self, rules: BlockRules) -> RowKernel | None:
        """These rules as machine code; None if it is not loaded, or the rules are others."""
        return None if self._evaluate is None else row_kernel(rules, self._evaluate, self)


class RowKernel:
    """The rules of one class of pods on resource numbers, as machine code."""

    __slots__ = ("_evaluate", "_kernels", "_numbers", "_rules")

    def __init__(
        self,
        rules: BlockRules,
        evaluate: Callable[..., int],
        kernels: RowKernels,
        numbers: tuple[np.ndarray, ...],
    ) -> None:
        """*numbers* are the rules as `evaluate_rows` takes them."""
        self._rules, self._evaluate, self._kernels = rules, evaluate, kernels
        self._numbers = numbers

    def changed(self, view: View, rows: np.ndarray, columns: np.ndarray) -> dict[int, int] | None:
        """Evaluate rows: those with another verdict, and the verdict before.

        *columns* are the lines of `AnswerColumns`. None if rules must be asked about all rows.
        """
        kernels = self._kernels
        if not self._rules.holds(view):
            return None
        if len(kernels.changed) < len(rows):
            kernels.changed = np.empty((2 * len(rows), 2), np.int64)
        count = self._evaluate(
            rows,
            (view.pods.numbers, view.nodes.numbers),
            self._numbers,
            (columns, kernels.changed),
            (LARGEST, UNFIT),
        )
        if count < 0:
            return None
        return dict(kernels.changed[:count].tolist()) if count else {}


def row_kernel(
    rules: BlockRules, evaluate: Callable[..., int], kernels: RowKernels
) -> RowKernel | None:
    """The rules with compiled code; None if there are others than `evaluate_rows` knows."""
    native = rules.filter
    if native is None or native.formula is not missing_resources:
        return None
    given = {each.formula: (weight, each.numbers) for weight, each in rules.scores}
    if len(given) < len(rules.scores) or not given.keys() <= NO_SCORES.keys():
        return None
    scores = [given.get(formula, (0, nothing)) for formula, nothing in NO_SCORES.items()]
    parts = (native.numbers, *(numbers for _, numbers in scores), [weight for weight, _ in scores])
    numbers = tuple(np.array(each, np.int64) for each in parts)
    return RowKernel(rules, evaluate, kernels, (*numbers, rules.verdict_of_bits))
