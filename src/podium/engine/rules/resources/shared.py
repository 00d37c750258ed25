"""The function shape of RequestedToCapacityRatio, and the causes of too little room."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from podium.engine.framework.causes import Cause, PodAmount, Room
from podium.engine.rows.rows import Ints, K, OneRow, Rows, as_int

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.verdicts import Reason


def room_on_row(column: int, at: OneRow, memo: Memo) -> tuple[int, int]:
    """What is allocatable and requested of a resource on a row.

    Columns are read once for all rows of an explanation, except where a trial changed the row.
    """
    if at.modified:
        return as_int(at.allocatable(column)), as_int(at.requested(column))
    known = memo.get(("room", column))
    if known is None:
        view = at.view
        known = memo["room", column] = (
            view.nodes.allocatable[column].tolist(),
            view.pods.requested[column].tolist(),
        )
    return known[0][at.row], known[1][at.row]


def lacking_room(
    reason: Reason, resource: str, column: int, wanted: int, at: OneRow
) -> Iterator[Cause]:
    """The cause for a resource of which too little is left for the pod."""
    promised = []
    for pod in at.nominated_pods():
        amount = sum(number for taken, number in pod.cls.taken if taken == column)
        if amount:
            promised.append(PodAmount(pod.key, amount))
    used = as_int(at.requested(column)) - sum(each.amount for each in promised)
    yield Room(reason.text, resource, wanted, as_int(at.allocatable(column)), used, tuple(promised))


def lacking_pods(reason: Reason, at: OneRow) -> Iterator[Cause]:
    """The cause where the node holds as many pods as it may."""
    allowed, there = as_int(at.allowed_pods()), as_int(at.pod_count())
    if there + 1 > allowed:
        promised = tuple(PodAmount(pod.key, 1) for pod in at.nominated_pods())
        yield Room(reason.text, "pods", 1, allowed, there - len(promised), promised)


def shape_score(at: Rows[K], shape: tuple[tuple[int, int], ...], utilization: Ints[K]) -> Ints[K]:
    """The score on the line through the points (utilization, score).

    Integer division truncates toward zero, which rounds up where the line falls.
    """
    score = at.full(shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        between = y0 + at.divide((y1 - y0) * (utilization - x0), x1 - x0)
        score = at.where(utilization <= x1, between, score)
    return at.where(utilization <= shape[0][0], shape[0][1], score)
