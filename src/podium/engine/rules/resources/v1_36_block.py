"""The v1.36 rules on resources over a block of numbers: cpu and memory of many rows together.

The rules in `v1_36` say what is computed, for any form of rows and any resources. Here is the usual
case in few calls of NumPy: native resources, and numbers of ordinary size; one row alone goes
through the formulas of `v1_36_numbers`. Tests compare all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.rows.resource_block import LARGEST, quotients
from podium.engine.rules.resources.v1_36_numbers import (
    balance_change_score,
    least_allocated_score,
    missing_resources,
)
from podium.engine.rules.v1_36 import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.rows.resource_block import ResourceBlock, RowNumbers
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View

CPU_MEMORY: Final = ["cpu", "memory"]
_BOTH = len(CPU_MEMORY)
_any = np.logical_or.reduce


def _line(numbers: Sequence[int]) -> np.ndarray:
    """A number for each line of a block."""
    return np.array(numbers, np.int64).reshape(-1, 1)


def _lines(classes: Sequence[Sequence[int]]) -> np.ndarray:
    """A number for each line of a block and each class of pods."""
    return np.array(classes, np.int64).T.reshape(len(classes[0]), len(classes), 1)


class NativeFit:
    """Which rows lack one of the first native resources, or room for one more pod."""

    __slots__ = ("_count", "_small", "_wanted", "amounts", "name", "numbers", "reasons")
    formula = staticmethod(missing_resources)

    def __init__(
        self,
        name: str,
        reasons: tuple[Reason, ...],
        amounts: Sequence[int],
        wanted: np.ndarray | None = None,
    ) -> None:
        """The amounts of the first native resources; all are above 0.

        *wanted* has those of many classes of pods, of which the first wants these amounts.
        """
        self.name, self.reasons = name, reasons
        self.amounts = self.numbers = amounts
        self._count = len(amounts)
        self._wanted = _line(amounts) if wanted is None else wanted
        self._small = 2 << len(amounts)

    @property
    def alike(self) -> Hashable:
        """The reasons name the resources."""
        return (self.name, self.reasons)

    def stacked(self, rules: Sequence[NativeFit]) -> NativeFit:
        """As one that answers in a line for each of them."""
        wanted = _lines([each.amounts for each in rules])
        return NativeFit(self.name, self.reasons, self.amounts, wanted)

    def bits(self, block: ResourceBlock) -> np.ndarray | None:
        """As `NodeResourcesFit.bits`."""
        allocatable = block.allocatable[: self._count]
        lacking = self._wanted > allocatable - block.requested[: self._count]
        crowded = block.pods >= block.allowed
        if not _any(lacking, None):
            return crowded.astype(np.intp) if _any(crowded, None) else None
        short: np.ndarray = crowded.astype(np.intp)
        for i, flags in enumerate(lacking):
            short = short | flags * (2 << i)
        lacking &= self._wanted > allocatable
        if _any(lacking, None):
            short |= _any(lacking) * self._small
        return short

    def bits_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesFit.bits`."""
        return missing_resources(self.numbers, row)


class _Scored:
    """A score of cpu and memory, of nodes that have both."""

    __slots__ = ("_wanted", "amounts", "numbers")
    highest = MAX_SCORE

    def __init__(self, amounts: Sequence[int], wanted: np.ndarray | None = None) -> None:
        """The amounts that a pod wants; *wanted* has those of many classes of pods."""
        self.amounts = self.numbers = amounts
        self._wanted = _line(amounts) if wanted is None else wanted

    def holds(self, view: View) -> bool:
        """Whether all nodes have cpu and memory."""
        return view.nodes.all_offer(0) and view.nodes.all_offer(1)


class LeastAllocated(_Scored):
    """The weighted mean of what is left of cpu and memory, in percent."""

    __slots__ = ("_factors", "_sum", "_weights")
    formula = staticmethod(least_allocated_score)

    def __init__(
        self, amounts: Sequence[int], weights: Sequence[int], wanted: np.ndarray | None = None
    ) -> None:
        super().__init__(amounts, wanted)
        self._sum = sum(weights)
        self._weights = tuple(weights)
        self.numbers = (*amounts, *weights)
        self._factors: np.ndarray | None = None
        if set(weights) != {1}:
            self._factors = _line(weights).reshape(-1, *[1] * (self._wanted.ndim - 1))

    @property
    def alike(self) -> Hashable:
        """The weights."""
        return (LeastAllocated, self._weights)

    def stacked(self, rules: Sequence[LeastAllocated]) -> LeastAllocated:
        """As one that answers in a line for each of them."""
        wanted = _lines([each.amounts for each in rules])
        return LeastAllocated(self.amounts, self._weights, wanted)

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesFitScore.score` with the strategy LeastAllocated."""
        capacity = block.allocatable[:_BOTH]
        left = capacity - block.scored - self._wanted
        np.maximum(left, 0, out=left)
        left *= MAX_SCORE
        rates = quotients(left, capacity)
        if self._factors is not None:
            rates *= self._factors
        total: np.ndarray = rates[0] + rates[1]
        total //= self._sum
        return total

    def score_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesFitScore.score` with the strategy LeastAllocated."""
        return least_allocated_score(self.numbers, row)


class BalanceChange(_Scored):
    """From the balance of cpu and memory with the pod, minus that without it."""

    __slots__ = ()
    formula = staticmethod(balance_change_score)

    @property
    def alike(self) -> Hashable:
        """All are alike."""
        return BalanceChange

    def stacked(self, rules: Sequence[BalanceChange]) -> BalanceChange:
        """As one that answers in a line for each of them."""
        return BalanceChange(self.amounts, _lines([each.amounts for each in rules]))

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesBalancedAllocation.score`."""
        capacity, used = block.allocatable[:_BOTH], block.requested[:_BOTH]
        total = used + self._wanted
        shares = np.empty((2, *total.shape))  # without the pod, and with it
        np.divide(used, capacity, out=shares[0])
        np.divide(total, capacity, out=shares[1])
        np.minimum(shares, 1.0, out=shares)
        distances = shares[:, 0] - shares[:, 1]
        np.abs(distances, out=distances)
        distances /= 2
        np.subtract(1, distances, out=distances)
        distances *= 100.0
        balances = distances.astype(np.int64)
        change: np.ndarray = balances[1] - balances[0]
        # 50 + (50 + change) / 2, and a change is never below -50.
        change += 150
        change >>= 1
        return change

    def score_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesBalancedAllocation.score`."""
        return balance_change_score(self.numbers, row)


def least_allocated(wanted: Sequence[int], weights: Sequence[int]) -> LeastAllocated | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    if not all(0 <= each <= LARGEST for each in wanted) or min(weights) < 0 or not sum(weights):
        return None
    return LeastAllocated(wanted, weights)


def balance_change(wanted: Sequence[int]) -> BalanceChange | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    return BalanceChange(wanted) if all(0 <= each <= LARGEST for each in wanted) else None
