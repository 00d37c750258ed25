"""The v1.36 rules on resources over a block of numbers: cpu and memory of many rows together.

The rules in `v1_36` say what is computed, for any form of rows and any resources. Here is the usual
case in few calls of NumPy: native resources, and numbers of ordinary size. Tests compare both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.rows.resource_block import LARGEST, quotients
from podium.engine.rules.v1_36 import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.rows.resource_block import ResourceBlock
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View

CPU_MEMORY: Final = ["cpu", "memory"]
_BOTH = len(CPU_MEMORY)
_any = np.logical_or.reduce


def _line(numbers: Sequence[int]) -> np.ndarray:
    """A number for each line of a block."""
    return np.array(numbers, np.int64).reshape(-1, 1)


class NativeFit:
    """Which rows lack one of the first native resources, or room for one more pod."""

    __slots__ = ("_count", "_small", "_wanted", "name", "reasons")

    def __init__(self, name: str, reasons: tuple[Reason, ...], wanted: Sequence[int]) -> None:
        """The amounts of the first native resources; all are above 0."""
        self.name, self.reasons = name, reasons
        self._count = len(wanted)
        self._wanted = _line(wanted)
        self._small = 2 << len(wanted)

    def bits(self, block: ResourceBlock) -> np.ndarray | None:
        """As `NodeResourcesFit.bits`."""
        allocatable = block.allocatable[: self._count]
        lacking = self._wanted > allocatable - block.requested[: self._count]
        crowded = block.pods >= block.allowed
        if not _any(lacking, None):
            return crowded.astype(np.intp) if _any(crowded) else None
        short: np.ndarray = crowded.astype(np.intp)
        for i, flags in enumerate(lacking):
            short |= flags * (2 << i)
        lacking &= self._wanted > allocatable
        if _any(lacking, None):
            short |= _any(lacking) * self._small
        return short


class _Scored:
    """A score of cpu and memory, of nodes that have both."""

    __slots__ = ("_wanted",)
    highest = MAX_SCORE

    def __init__(self, wanted: Sequence[int]) -> None:
        self._wanted = _line(wanted)

    def holds(self, view: View) -> bool:
        """Whether all nodes have cpu and memory."""
        return view.nodes.all_offer(0) and view.nodes.all_offer(1)


class LeastAllocated(_Scored):
    """The weighted mean of what is left of cpu and memory, in percent."""

    __slots__ = ("_sum", "_weights")

    def __init__(self, wanted: Sequence[int], weights: Sequence[int]) -> None:
        super().__init__(wanted)
        self._sum = sum(weights)
        self._weights = _line(weights) if set(weights) != {1} else None

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesFitScore.score` with the strategy LeastAllocated."""
        capacity = block.allocatable[:_BOTH]
        left = capacity - block.scored
        left -= self._wanted
        np.maximum(left, 0, out=left)
        left *= MAX_SCORE
        rates = quotients(left, capacity)
        if self._weights is not None:
            rates *= self._weights
        total: np.ndarray = rates[0] + rates[1]
        total //= self._sum
        return total


class BalanceChange(_Scored):
    """From the balance of cpu and memory with the pod, minus that without it."""

    __slots__ = ()

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesBalancedAllocation.score`."""
        capacity, used = block.allocatable[:_BOTH], block.requested[:_BOTH]
        shares = np.empty((2, *used.shape))  # without the pod, and with it
        np.divide(used, capacity, out=shares[0])
        np.divide(used + self._wanted, capacity, out=shares[1])
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


def least_allocated(wanted: Sequence[int], weights: Sequence[int]) -> LeastAllocated | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    if not all(0 <= each <= LARGEST for each in wanted) or min(weights) < 0 or not sum(weights):
        return None
    return LeastAllocated(wanted, weights)


def balance_change(wanted: Sequence[int]) -> BalanceChange | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    return BalanceChange(wanted) if all(0 <= each <= LARGEST for each in wanted) else None
