"""NodeResourcesFit: room for the pod's requests, and how full the node would be."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from podium.engine.framework.rule import Scope
from podium.engine.rules.plugins import MAX_SCORE, FilterPlugin, ScorePlugin
from podium.engine.state.accounting import NATIVE
from podium.engine.state.pod_requests import FLOORS, pod_requests, rounded
from podium.engine.state.verdicts import Reason
from podium.objects.resource_names import is_extended, is_scalar

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.view import View

TOO_MANY_PODS = Reason("Too many pods")
#: No words of its own: marks a node that is too small even when empty.
TOO_SMALL = Reason("", curable=False)


@cache
def _insufficient(name: str) -> Reason:
    return Reason(f"Insufficient {name}")


class NodeResourcesFit(FilterPlugin):
    """Room for one more pod and for all it requests; what it does not request is not checked."""

    name = "NodeResourcesFit"
    always = Scope.PODS

    def __init__(
        self,
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
    ) -> None:
        self.ignored = ignored
        self.ignored_groups = ignored_groups

    def skips(self, pod: Incoming, view: View) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: only numbers are read."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def _checked(self, cls: PodClass, view: View) -> tuple[tuple[str, int, int], ...]:
        """Name, column and amount of each requested resource, extended ones by name."""
        return cls.once(
            ("fit", self.ignored, self.ignored_groups), lambda: tuple(self._resources(cls, view))
        )

    def _resources(self, cls: PodClass, view: View) -> list[tuple[str, int, int]]:
        native = [(name, i, cls.wanted[i]) for i, name in enumerate(NATIVE) if cls.wanted[i] > 0]
        names = {column: name for name, column in view.resources.items()}
        # A sum that wrapped below nothing counts as nothing.
        scalars = sorted((names[c], c, number) for c, number in cls.scalars.items() if number > 0)
        return native + [s for s in scalars if not self._left_alone(s[0])]

    def _left_alone(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Pods, then resources; last whether the node is too small altogether."""
        names = [_insufficient(name) for name, _, _ in self._checked(pod.cls, view)]
        return (TOO_MANY_PODS, *names, TOO_SMALL)

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """A bit for each resource that falls short, and one for a node too small."""
        checked = self._checked(pod.cls, at.view)
        short = (at.pod_count() + 1 > at.allowed_pods()) * 1
        small = 2 << len(checked)
        for i, (_, column, wanted) in enumerate(checked):
            allocatable = at.allocatable(column)
            lacking = wanted > at.wrap(allocatable - at.requested(column))
            short = short | (lacking * (2 << i)) | ((lacking & (wanted > allocatable)) * small)
        return short


class NodeResourcesFitScore(ScorePlugin):
    """How full the node would be, by one of three strategies over weighted resources."""

    name = "NodeResourcesFit"
    always = Scope.PODS

    def __init__(
        self,
        strategy: str = "LeastAllocated",
        resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1)),
        shape: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.strategy = strategy
        self.resources = resources
        #: Points (utilization, score), the score on the scale of 100.
        self.shape = tuple((x, y * 10) for x, y in shape)

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """The weighted mean over the resources that the node has."""
        total, weights = at.full(0), at.full(0)
        for name, weight in self.resources:
            wanted = _wanted(pod.cls).get(name, 0)
            column = at.view.resources.get(name)
            if column is None or (name not in NATIVE and (not wanted or not is_scalar(name))):
                continue
            capacity = at.allocatable(column)
            used = at.assumed(column) if column < 2 else at.requested(column)
            rate = self._rate(at, at.wrap(used + wanted), capacity)
            counted = (capacity != 0) & (rate > 0 if self.shape else capacity != 0)
            total = total + at.where(counted, rate * weight, 0)
            weights = weights + counted * weight
        if self.shape:
            return _rounded(at, total, weights)
        return at.divide(total, weights)

    def _rate(self, at: Rows, used: Ints, capacity: Ints) -> Ints:
        if self.strategy == "LeastAllocated":
            left = at.divide(at.wrap(at.wrap(capacity - used) * MAX_SCORE), capacity)
            return at.where(used > capacity, 0, left)
        if self.strategy == "MostAllocated":
            most = at.where(used > capacity, capacity, used)
            return at.divide(at.wrap(most * MAX_SCORE), capacity)
        percent = at.divide(at.wrap(used * 100), capacity)
        return broken_line(at, self.shape, at.where(used > capacity, 100, percent))


def broken_line(at: Rows, shape: tuple[tuple[int, int], ...], utilization: Ints) -> Ints:
    """The line through the points; on falling segments truncation rounds up."""
    score = at.full(shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        between = y0 + at.divide((y1 - y0) * (utilization - x0), x1 - x0)
        score = at.where(utilization <= x1, between, score)
    return at.where(utilization <= shape[0][0], shape[0][1], score)


def _rounded(at: Rows, total: Ints, weights: Ints) -> Ints:
    """The mean, half rounded up; 0 where nothing counted."""
    mean = at.ratio(total, at.where(weights == 0, 1, weights))
    return at.truncate(mean + 0.5)


def _wanted(cls: PodClass) -> dict[str, int]:
    """What the pod requests for the score: with floors, without pod-level resources."""
    found: Any = cls.once("scored requests", lambda: _scored(cls))
    return dict[str, int](found) if not isinstance(found, dict) else found


def _scored(cls: PodClass) -> dict[str, int]:
    exact = pod_requests(cls.sample, pod_level=False, floors=FLOORS)
    return {name: rounded(name, number) for name, number in exact.items()}
