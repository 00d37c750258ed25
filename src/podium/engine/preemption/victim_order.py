"""The order of pods by importance on many rows at once, equals as the real program orders them.

Up to twelve pods equals keep their order, and those without a start time come out backwards. Beyond
that Go's sort mixes equals by their pattern: it is worked out once for all rows of one pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.preemption.go_sort import MOST_INSERTED, go_sorted
from podium.engine.state.pod_class import NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.state.pod_class import Resident


def by_importance(place: np.ndarray, priority: np.ndarray, started: np.ndarray) -> np.ndarray:
    """The pods of each row, listed row after row, most important first; start times may lack."""
    listed = np.arange(len(place))
    unknown = np.isinf(started)
    backwards = np.where(unknown, -listed, listed)
    order = np.lexsort((backwards, started, -priority, place))
    lengths = np.bincount(place)
    if not (lengths > MOST_INSERTED).any():
        return order
    pattern = _ranks(order, lengths, place, priority, started) * 2 + unknown
    starts = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > MOST_INSERTED]).tolist():
        slots = starts[lengths == length][:, None] + np.arange(length)
        patterns, number = np.unique(pattern[slots], axis=0, return_inverse=True)
        sorted_as = np.array([_sorted(each) for each in patterns.tolist()])
        order[slots] = slots[:, :1] + sorted_as[number.ravel()]
    return order


def _ranks(
    order: np.ndarray,
    lengths: np.ndarray,
    place: np.ndarray,
    priority: np.ndarray,
    started: np.ndarray,
) -> np.ndarray:
    """For each pod, how many different importances on its row come before it."""
    differs = np.ones(len(order), np.int64)
    one, other = order[1:], order[:-1]
    differs[1:] = (place[one] != place[other]) | (priority[one] != priority[other])
    differs[1:] |= started[one] != started[other]
    so_far = np.cumsum(differs)
    first = np.repeat(so_far[(np.cumsum(lengths) - lengths)[lengths > 0]], lengths[lengths > 0])
    ranks = np.zeros(len(order), np.int64)
    ranks[order] = so_far - first
    return ranks


def _sorted(pattern: list[int]) -> list[int]:
    """Places in a list in the order Go's sort leaves them."""
    return go_sorted(range(len(pattern)), lambda i, j: _comes_before(pattern[i], pattern[j]))


def _comes_before(one: int, other: int) -> bool:
    """Of two pods without a start time, each comes before the other."""
    if one >> 1 != other >> 1:
        return one < other
    return bool(one & other & 1)


def more_important(one: Resident, other: Resident) -> bool:
    """Whether one comes before the other.

    "Now", which a missing start time counts as, is later at every look: of two pods without one
    each comes before the other.
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.started == other.started == NOT_STARTED:
        return True
    return one.started < other.started


def sorted_by_importance(pods: Iterable[Resident]) -> list[Resident]:
    """Most important first; equals come out as they do in the real program."""
    return go_sorted(pods, more_important)
