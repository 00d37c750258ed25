"""The function shape of RequestedToCapacityRatio."""

from __future__ import annotations

from itertools import pairwise

from podium.engine.rows.rows import Ints, K, Rows


def shape_score(at: Rows[K], shape: tuple[tuple[int, int], ...], utilization: Ints[K]) -> Ints[K]:
    """The score on the line through the points (utilization, score).

    Integer division truncates toward zero, which rounds up where the line falls.
    """
    score = at.full(shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        between = y0 + at.divide((y1 - y0) * (utilization - x0), x1 - x0)
        score = at.where(utilization <= x1, between, score)
    return at.where(utilization <= shape[0][0], shape[0][1], score)
