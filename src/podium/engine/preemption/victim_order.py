"""The order in which the pods of each row are put back: the most important first.

In v1.36 pods of equal importance come out as Go's sort leaves them. Up to twelve pods, equals keep
their order, and those without a start time are reversed. Beyond that Go's sort permutes equals by
their pattern, which is worked out once for all rows with the same pattern.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.preemption.go_sort import MOST_INSERTED, go_sorted
from podium.engine.state.pod_class import NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.rows.pod_arrays import PodArrays
    from podium.engine.state.pod_class import Resident


_PRIORITY = attrgetter("priority")


def by_priority(pods: PodArrays) -> np.ndarray:
    """Indices of the pods, row after row, the highest priority first; equals keep their order."""
    return np.lexsort((-pods.priority, pods.position))


def sorted_by_priority(pods: Iterable[Resident]) -> list[Resident]:
    """The pods of one row, the highest priority first; equals keep their order."""
    return sorted(pods, key=_PRIORITY, reverse=True)


def by_importance(pods: PodArrays) -> np.ndarray:
    """Indices of the pods, row after row, the highest priority and the earliest start first.

    The pods must be listed row after row.
    """
    position, started = pods.position, pods.started
    listed = np.arange(len(position))
    unknown = np.isinf(started)
    reversed_if_unknown = np.where(unknown, -listed, listed)
    order = np.lexsort((reversed_if_unknown, started, -pods.priority, position))
    lengths = np.bincount(position)
    if not (lengths > MOST_INSERTED).any():
        return order
    pattern = _ranks(order, lengths, pods) * 2 + unknown
    starts = np.cumsum(lengths) - lengths
    for length in np.bincount(lengths[lengths > MOST_INSERTED]).nonzero()[0].tolist():
        slots = starts[lengths == length][:, None] + np.arange(length)
        patterns, number = np.unique(pattern[slots], axis=0, return_inverse=True)
        sorted_as = np.array([_sorted(each) for each in patterns.tolist()])
        order[slots] = slots[:, :1] + sorted_as[number.ravel()]
    return order


def _ranks(order: np.ndarray, lengths: np.ndarray, pods: PodArrays) -> np.ndarray:
    """For each pod, how many different importances on its row come before it."""
    differs = np.ones(len(order), np.int64)
    one, other = order[1:], order[:-1]
    differs[1:] = pods.position[one] != pods.position[other]
    differs[1:] |= pods.priority[one] != pods.priority[other]
    differs[1:] |= pods.started[one] != pods.started[other]
    so_far = np.cumsum(differs)
    first = np.repeat(so_far[(np.cumsum(lengths) - lengths)[lengths > 0]], lengths[lengths > 0])
    ranks = np.zeros(len(order), np.int64)
    ranks[order] = so_far - first
    return ranks


def _sorted(pattern: list[int]) -> list[int]:
    """Indices of a pattern in the order in which Go's sort leaves them."""
    return go_sorted(range(len(pattern)), lambda i, j: _comes_before(pattern[i], pattern[j]))


def _comes_before(one: int, other: int) -> bool:
    """Of two pods without a start time, each comes before the other."""
    if one >> 1 != other >> 1:
        return one < other
    return bool(one & other & 1)


def more_important(one: Resident, other: Resident) -> bool:
    """Whether one pod comes before the other.

    A missing start time counts as now, which is later at every comparison: of two pods without
    one, each comes before the other.
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.started == other.started == NOT_STARTED:
        return True
    return one.started < other.started


def sorted_by_importance(pods: Iterable[Resident]) -> list[Resident]:
    """The most important first; equals in the order in which Go's sort leaves them."""
    return go_sorted(pods, more_important)
