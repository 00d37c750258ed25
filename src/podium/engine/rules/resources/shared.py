"""What both generations say of too little room, and the shape of RequestedToCapacityRatio."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from podium.engine.framework.causes import Cause, PodAmount, Room
from podium.engine.framework.rule import BitFilter
from podium.engine.framework.trace import Prepared
from podium.engine.rows.rows import Ints, K, OneRow, Rows, as_int
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import ManyRows
    from podium.engine.state.pod_class import Incoming, PodClass
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


class Wanted(NamedTuple):
    """How much of a resource a pod wants, and where its numbers stand."""

    name: str
    column: int
    amount: int


class RoomFilter(BitFilter):
    """The node must have room for one more pod and for all its requests."""

    keyed_by_form = True
    #: The reason where the node holds as many pods as it may, and those after the resources'.
    too_many_pods: Reason
    last_reasons: tuple[Reason, ...] = ()

    def __init__(self) -> None:
        self._kept_reasons: KeptPerClass[tuple[Reason, ...]] = KeptPerClass()

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests."""
        return (cls.wanted, tuple(cls.scalars.items()))

    def checked(self, cls: PodClass, view: View) -> Sequence[Wanted]:
        """The resources that are checked, in the order of the reasons."""
        raise NotImplementedError

    def reasons_of(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Pods, then the resources that are checked."""
        checked = self.checked(pod.cls, view)
        return self._kept_reasons.of(pod.cls, checked, lambda: self._reasons(checked))

    def _reasons(self, checked: Sequence[Wanted]) -> tuple[Reason, ...]:
        named = (insufficient(each.name) for each in checked)
        return (self.too_many_pods, *named, *self.last_reasons)

    def lacks(self, allocatable: int, requested: int, wanted: int) -> bool:
        """Whether too little of a resource is left for the pod."""
        raise NotImplementedError

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The requests."""
        for name, _, amount in self.checked(pod.cls, view):
            if amount:
                yield Prepared(self.name, "request", resource=name, amount=amount)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """Every resource of which too little is left, with the numbers."""
        checked = self.checked(pod.cls, at.view)
        if at.modified:
            yield from lacking_pods(self.too_many_pods, at)
            for each in checked:
                there, used = as_int(at.allocatable(each.column)), as_int(at.requested(each.column))
                if self.lacks(there, used, each.amount):
                    yield lacking_room(each, at)
            return
        numbers = memo.get(self.name)
        if numbers is None:
            numbers = memo[self.name] = ResourceNumbers(at.view, checked)
        yield from numbers.lacking(self.too_many_pods, at.row, self.lacks)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """The resource numbers of the row."""
        numbers = [at.pod_count(), at.allowed_pods()]
        for each in self.checked(pod.cls, at.view):
            numbers += [at.allocatable(each.column), at.requested(each.column)]
        return list(zip(*(each.tolist() for each in numbers), strict=True))


class ResourceNumbers:
    """The resource numbers of all rows as plain numbers, read once for an explanation."""

    def __init__(self, view: View, checked: Iterable[Wanted]) -> None:
        self.counts: list[int] = view.pods.counts.tolist()
        self.allowed: list[int] = view.nodes.allowed_pods.tolist()
        #: What is wanted, and what is allocatable and requested on each row.
        self.resources: list[tuple[Wanted, list[int], list[int]]] = [
            (
                each,
                view.nodes.allocatable[each.column].tolist(),
                view.pods.requested[each.column].tolist(),
            )
            for each in checked
        ]

    def lacking(
        self, pods: Reason, row: int, lacks: Callable[[int, int, int], bool]
    ) -> Iterator[Cause]:
        """What is lacking on a row; *lacks* takes allocatable, requested and wanted amounts."""
        if self.counts[row] + 1 > self.allowed[row]:
            yield Room(pods.text, "pods", 1, self.allowed[row], self.counts[row])
        for (name, _, wanted), allocatable, requested in self.resources:
            if lacks(allocatable[row], requested[row], wanted):
                text = insufficient(name).text
                yield Room(text, name, wanted, allocatable[row], requested[row])


def lacking_room(wanted: Wanted, at: OneRow) -> Cause:
    """The cause for a resource of which too little is left for the pod."""
    name, column, amount = wanted
    promised = []
    for pod in at.nominated_pods():
        taken = sum(number for there, number in pod.cls.taken if there == column)
        if taken:
            promised.append(PodAmount(pod.key, taken))
    used = as_int(at.requested(column)) - sum(each.amount for each in promised)
    there, text = as_int(at.allocatable(column)), insufficient(name).text
    return Room(text, name, amount, there, used, tuple(promised))


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
