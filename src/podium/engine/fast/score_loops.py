"""Loops over the scores of all rows, which find the best rows of one class of pods.

They are compiled to machine code (`engine.fast.compiled_rows`), and that is kept on disk as long as
this file stays the same, so nothing here may depend on a constant or a function of another module.
In all of them *order* has the row at each position of the node order, and *groups* the number of
the group at each position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def best_by_group(
    scores: np.ndarray, order: np.ndarray, groups: np.ndarray, found: np.ndarray, below: int
) -> int:
    """Write the highest score of each group, how many of its rows have it, and the first of them.

    *scores* are by row, and *below* is one that counts as none. *found* has a line of three numbers
    for each group; the last one is a position. Returns how many groups have a score.
    """
    for group in range(len(found)):
        found[group, 0], found[group, 1], found[group, 2] = below, 0, 0
    for position in range(len(order)):
        score = scores[order[position]]
        group = groups[position]
        if score >= found[group, 0]:
            if score > found[group, 0]:
                found[group, 0], found[group, 1], found[group, 2] = score, 1, position
            else:
                found[group, 1] += 1
    scored = 0
    for group in range(len(found)):
        if found[group, 0] != below:
            scored += 1
    return scored


def split_groups(
    numbers: np.ndarray, order: np.ndarray, groups: np.ndarray, split: np.ndarray
) -> int:
    """Write groups whose rows have equal *numbers* as well; one more than the highest of these.

    The new group is the old one, times what is returned, plus the number of the row.
    """
    span = 1
    for row in order:
        span = max(span, numbers[row] + 1)
    for position in range(len(order)):
        split[position] = groups[position] * span + numbers[order[position]]
    return span
