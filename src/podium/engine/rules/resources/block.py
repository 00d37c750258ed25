"""The plugins for resources over a block of numbers: cpu and memory of many rows together.

The rules in `fit` and `balanced_allocation` say what is computed, for any form of rows and any
resources. Here is the usual case in few calls of NumPy, and for one row in plain integers: native
resources, and numbers of ordinary size. Tests compare all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.rows.resource_block import LARGEST, quotients
from podium.engine.rules.plugins import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.rows.resource_block import ResourceBlock, RowNumbers
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View

CPU_MEMORY: Final = ["cpu", "memory"]
_BOTH = len(CPU_MEMORY)
_any = np.logical_or.reduce
#: Where the numbers of one row are, in the order that `RowNumbers` describes.
_USED_CPU, _USED_MEMORY, _SCORED_CPU, _SCORED_MEMORY = 0, 1, 3, 4
_PODS, _CPU, _MEMORY, _ALLOWED = 5, 6, 7, 9


def _line(numbers: Sequence[int]) -> np.ndarray:
    """A number for each line of a block."""
    return np.array(numbers, np.int64).reshape(-1, 1)


class NativeFit:
    """Which rows lack one of the first native resources, or room for one more pod."""

    __slots__ = ("_amounts", "_small", "_wanted", "name", "reasons")

    def __init__(self, name: str, reasons: tuple[Reason, ...], amounts: Sequence[int]) -> None:
        """The amounts of the first native resources; all are above 0."""
        self.name, self.reasons = name, reasons
        self._amounts = amounts
        self._wanted = _line(amounts)
        self._small = 2 << len(amounts)

    def bits(self, block: ResourceBlock) -> np.ndarray | None:
        """As `NodeResourcesFit.bits`."""
        count = len(self._amounts)
        allocatable = block.allocatable[:count]
        lacking = self._wanted > allocatable - block.requested[:count]
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
        short = 1 if row[_PODS] >= row[_ALLOWED] else 0
        for i, wanted in enumerate(self._amounts):
            allocatable = row[_CPU + i]
            if wanted > allocatable - row[i]:
                short |= 2 << i
                if wanted > allocatable:
                    short |= self._small
        return short


class _Scored:
    """A score of cpu and memory, of nodes that have both."""

    __slots__ = ("_amounts", "_wanted")
    highest = MAX_SCORE

    def __init__(self, amounts: Sequence[int]) -> None:
        """The amounts that a pod wants."""
        self._amounts = amounts
        self._wanted = _line(amounts)

    def holds(self, view: View) -> bool:
        """Whether all nodes have cpu and memory."""
        return view.nodes.all_offer(0) and view.nodes.all_offer(1)


class LeastAllocated(_Scored):
    """The weighted mean of what is left of cpu and memory, in percent."""

    __slots__ = ("_factors", "_weights")

    def __init__(self, amounts: Sequence[int], weights: Sequence[int]) -> None:
        super().__init__(amounts)
        self._weights = tuple(weights)
        self._factors = None if set(weights) == {1} else _line(weights)

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
        total //= sum(self._weights)
        return total

    def score_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesFitScore.score` with the strategy LeastAllocated."""
        (cpu, memory), (cpu_weight, memory_weight) = self._amounts, self._weights
        total = 0
        left = row[_CPU] - row[_SCORED_CPU] - cpu
        if left > 0:
            total += left * MAX_SCORE // row[_CPU] * cpu_weight
        left = row[_MEMORY] - row[_SCORED_MEMORY] - memory
        if left > 0:
            total += left * MAX_SCORE // row[_MEMORY] * memory_weight
        return total // (cpu_weight + memory_weight)


class BalanceWithPod(_Scored):
    """The balance of cpu and memory with the pod."""

    __slots__ = ()

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesBalancedAllocation.score`, without what was before."""
        total = block.requested[:_BOTH] + self._wanted
        return _balances(np.divide(total, block.allocatable[:_BOTH]))

    def score_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesBalancedAllocation.score`, without what was before."""
        more_cpu, more_memory = self._amounts
        return _balance_on(row, row[_USED_CPU] + more_cpu, row[_USED_MEMORY] + more_memory)


class BalanceChange(_Scored):
    """From the balance of cpu and memory with the pod, minus that without it."""

    __slots__ = ()

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """As `NodeResourcesBalancedAllocation.score`."""
        capacity, used = block.allocatable[:_BOTH], block.requested[:_BOTH]
        total = used + self._wanted
        shares = np.empty((2, *total.shape))  # without the pod, and with it
        np.divide(used, capacity, out=shares[0])
        np.divide(total, capacity, out=shares[1])
        balances = _balances(shares)
        change: np.ndarray = balances[1] - balances[0]
        # 50 + (50 + change) / 2, and a change is never below -50.
        change += 150
        change >>= 1
        return change

    def score_on(self, row: RowNumbers) -> int:
        """As `NodeResourcesBalancedAllocation.score`."""
        used_cpu, used_memory = row[_USED_CPU], row[_USED_MEMORY]
        more_cpu, more_memory = self._amounts
        before = _balance_on(row, used_cpu, used_memory)
        after = _balance_on(row, used_cpu + more_cpu, used_memory + more_memory)
        # 50 + (50 + change) / 2, and a change is never below -50.
        return (after - before + 150) >> 1


def _balances(shares: np.ndarray) -> np.ndarray:
    """100 for equal shares of cpu and memory, less the more they differ; *shares* are changed."""
    np.minimum(shares, 1.0, out=shares)
    distances: np.ndarray = shares[..., 0, :] - shares[..., 1, :]
    np.abs(distances, out=distances)
    distances /= 2
    np.subtract(1, distances, out=distances)
    distances *= 100.0
    balances: np.ndarray = distances.astype(np.int64)
    return balances


def _balance_on(row: RowNumbers, cpu: int, memory: int) -> int:
    """The same for one row that uses so much."""
    distance = abs(min(cpu / row[_CPU], 1.0) - min(memory / row[_MEMORY], 1.0))
    return int((1 - distance / 2) * 100.0)


def least_allocated(wanted: Sequence[int], weights: Sequence[int]) -> LeastAllocated | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    if not all(0 <= each <= LARGEST for each in wanted) or min(weights) < 0 or not sum(weights):
        return None
    return LeastAllocated(wanted, weights)


def balance(wanted: Sequence[int], *, of_change: bool) -> BalanceWithPod | BalanceChange | None:
    """The score for a pod that wants so much; None if its numbers are not of ordinary size."""
    if not all(0 <= each <= LARGEST for each in wanted):
        return None
    return BalanceChange(wanted) if of_change else BalanceWithPod(wanted)
