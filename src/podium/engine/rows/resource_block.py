"""The resource numbers of many rows in one array, for rules that combine several of them.

Each call of NumPy on the few hundred rows that changed since a class of pods was last decided costs
about the same as on one row. A rule that reads cpu and memory together makes half the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from podium.engine.state.accounting import NATIVE

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View

#: All numbers of a block are from 0 up to this: a sum of two of them, times 100, is exact in 64-bit
#: integers and in doubles. It has no more bits than any of them.
LARGEST = (1 << 45) - 1
#: So many integers are divided in less time than it takes to convert them.
FEW_DIVISIONS = 1024

_NATIVE = len(NATIVE)
_highest = np.maximum.reduce


class ResourceBlock:
    """Numbers of some rows: a line per resource, an entry per row."""

    __slots__ = ("allocatable", "allowed", "pods", "requested", "scored")

    def __init__(self, pods: np.ndarray, nodes: np.ndarray) -> None:
        """What the pods of the rows count for, and what the nodes can allocate: line by row."""
        #: Requests of cpu, memory and ephemeral storage.
        self.requested = pods[:_NATIVE]
        #: Requests of cpu and memory as scores count them.
        self.scored = pods[_NATIVE:-1]
        #: The number of pods.
        self.pods = pods[-1]
        #: What the nodes can allocate of cpu, memory and ephemeral storage.
        self.allocatable = nodes[:_NATIVE]
        #: The number of pods that the nodes may hold.
        self.allowed = nodes[-1]


#: The same numbers of one row as plain integers, in this order: what its pods request of cpu,
#: memory and ephemeral storage, cpu and memory as scores count them, the number of pods; then what
#: the node can allocate of cpu, memory and ephemeral storage, and how many pods it may hold.
RowNumbers = list[int]


class BlockFilter(Protocol):
    """A filter of scope `RESOURCES` for one class of pods, over a block of numbers."""

    name: str
    #: The reasons there may be; bit i of the answers stands for reason i.
    reasons: tuple[Reason, ...]

    def bits(self, block: ResourceBlock) -> np.ndarray | None:
        """Which of the reasons apply, per row; None if none does anywhere."""

    def bits_on(self, row: RowNumbers) -> int:
        """Which of the reasons apply on one row."""


class BlockScore(Protocol):
    """A score of scope `RESOURCES` for one class of pods, over a block of numbers."""

    #: No score is above this, nor below 0.
    highest: int

    def holds(self, view: View) -> bool:
        """Whether it may be used, as the nodes are now."""

    def scores(self, block: ResourceBlock) -> np.ndarray:
        """A score per row, in an array that the caller may change."""

    def score_on(self, row: RowNumbers) -> int:
        """The score of one row."""


def row_state(view: View, row: int) -> Hashable:
    """Everything that a rule of scope RESOURCES can read of a row."""
    pods, nodes = view.pods, view.nodes
    native = (pods.numbers[:, row].tobytes(), nodes.sizes[row])
    if len(pods.requested) == _NATIVE:
        return native
    others = (*pods.requested[_NATIVE:], *nodes.allocatable[_NATIVE:])
    return (*native, *[column.item(row) for column in others])


def row_numbers(view: View, row: int) -> RowNumbers | None:
    """The numbers of one row; None if one is below 0 or very large."""
    found: RowNumbers = view.pods.numbers[:, row].tolist()
    found += view.nodes.numbers[:, row].tolist()
    return None if min(found) < 0 or max(found) > LARGEST else found


def resource_block(view: View, rows: np.ndarray) -> ResourceBlock | None:
    """The numbers of these rows; None if there are none, or one is below 0 or very large."""
    if not len(rows):
        return None
    pods, nodes = view.pods.numbers.take(rows, 1), view.nodes.numbers.take(rows, 1)
    # Negative numbers are very large ones when they are read without a sign.
    if _highest(pods.view(np.uint64), None) > LARGEST:
        return None
    if _highest(nodes.view(np.uint64), None) > LARGEST:
        return None
    return ResourceBlock(pods, nodes)


def quotients(numbers: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Integer quotients; nothing is negative, no divisor is 0, and doubles hold all numbers."""
    found: np.ndarray
    found = numbers // by if numbers.size < FEW_DIVISIONS else (numbers / by).astype(np.int64)
    return found
