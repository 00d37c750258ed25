"""What both generations say of too little room, and the shape of RequestedToCapacityRatio."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, PodAmount, Room
from podium.engine.rows.rows import Ints, K, OneRow, Rows, as_int
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from podium.engine.rows.rows import ManyRows
    from podium.engine.state.view import View

_INSUFFICIENT: Final = "Insufficient "
TOO_MANY_PODS: Final = Reason("Too many pods")


@cache
def insufficient(resource: str) -> Reason:
    """The reason for a resource of which too little is left."""
    return Reason(f"{_INSUFFICIENT}{resource}")


def lacking_resource(reason: str) -> str | None:
    """The resource of which a node has too little, by the text of the reason; None for others."""
    if reason == TOO_MANY_PODS.text:
        return "pods"
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else None


def room_keys(columns: Iterable[int], at: ManyRows) -> list[Hashable]:
    """The numbers of each row that causes of too little room are made of."""
    numbers = [at.pod_count(), at.allowed_pods()]
    for column in columns:
        numbers += [at.allocatable(column), at.requested(column)]
    return list(zip(*(each.tolist() for each in numbers), strict=True))


class ResourceNumbers:
    """The resource numbers of all rows as plain numbers, read once for an explanation."""

    def __init__(self, view: View, checked: Iterable[tuple[str, str, int, int]]) -> None:
        """*checked* are reason, name, column and wanted amount of each resource."""
        self.counts: list[int] = view.pods.counts.tolist()
        self.allowed: list[int] = view.nodes.allowed_pods.tolist()
        #: Reason, name and wanted amount, and what is allocatable and requested on each row.
        self.resources: list[tuple[str, str, int, list[int], list[int]]] = [
            (
                reason,
                name,
                wanted,
                view.nodes.allocatable[column].tolist(),
                view.pods.requested[column].tolist(),
            )
            for reason, name, column, wanted in checked
        ]

    def lacking(
        self, pods: Reason, row: int, lacks: Callable[[int, int, int], bool]
    ) -> Iterator[Cause]:
        """What is lacking on a row; *lacks* takes allocatable, requested and wanted amounts."""
        if self.counts[row] + 1 > self.allowed[row]:
            yield Room(pods.text, "pods", 1, self.allowed[row], self.counts[row])
        for reason, name, wanted, allocatable, requested in self.resources:
            if lacks(allocatable[row], requested[row], wanted):
                yield Room(reason, name, wanted, allocatable[row], requested[row])


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
