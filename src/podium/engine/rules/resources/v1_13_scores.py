"""Priorities on how full a node would be with the pod on it.

"Requested" counts a floor for containers that name no cpu or memory, on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.priorities import MAX_SCORE, NodePriority
from podium.engine.state.accounting import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints


class _Filling(NodePriority):
    """The mean over cpu and memory of a score for each."""

    always = Scope.PODS

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def rate(self, at: Rows, requested: Ints, capacity: Ints) -> Ints:
        """The score of one resource."""
        raise NotImplementedError

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """Integer division at each step: it decides ties."""
        cpu, memory = (
            self.rate(at, filled(pod, at, resource), at.allocatable(resource))
            for resource in (CPU, MEMORY)
        )
        return at.divide(cpu + memory, 2)


def filled(pod: Incoming, at: Rows, resource: int) -> Ints:
    """What would be requested with the pod there."""
    return at.wrap(at.assumed(resource) + pod.cls.assumed[resource])


class LeastRequestedPriority(_Filling):
    """Prefers nodes with the largest share left: (capacity - requested) * 10 / capacity."""

    name = "LeastRequestedPriority"

    def rate(self, at: Rows, requested: Ints, capacity: Ints) -> Ints:
        """0 for an unknown or exceeded capacity."""
        share = at.divide(at.wrap(at.wrap(capacity - requested) * MAX_SCORE), capacity)
        return at.where(requested > capacity, 0, share)


class MostRequestedPriority(_Filling):
    """Prefers nodes with the largest share used: requested * 10 / capacity."""

    name = "MostRequestedPriority"

    def rate(self, at: Rows, requested: Ints, capacity: Ints) -> Ints:
        """0 for an unknown or exceeded capacity."""
        share = at.divide(at.wrap(requested * MAX_SCORE), capacity)
        return at.where(requested > capacity, 0, share)


class RequestedToCapacityRatioPriority(_Filling):
    """Scores the utilization by a broken line through given points (utilization, score)."""

    name = "RequestedToCapacityRatioPriority"

    def __init__(
        self,
        shape: Sequence[tuple[int, int]] = ((0, MAX_SCORE), (100, 0)),
        name: str = "RequestedToCapacityRatioPriority",
    ) -> None:
        self.shape = tuple(shape)
        self.name = name

    def rate(self, at: Rows, requested: Ints, capacity: Ints) -> Ints:
        """An unknown or exceeded capacity counts as full."""
        left = at.divide(at.wrap(at.wrap(capacity - requested) * 100), capacity)
        full = (capacity == 0) | (requested > capacity)
        return self._line(at, at.where(full, 100, 100 - left))

    def _line(self, at: Rows, utilization: Ints) -> Ints:
        score = at.full(self.shape[-1][1])
        for (x0, y0), (x1, y1) in reversed(list(zip(self.shape, self.shape[1:], strict=False))):
            # Truncation toward zero rounds up on falling segments.
            between = y0 + at.divide((y1 - y0) * (utilization - x0), x1 - x0)
            score = at.where(utilization <= x1, between, score)
        return at.where(utilization <= self.shape[0][0], self.shape[0][1], score)


class BalancedResourceAllocation(NodePriority):
    """Prefers nodes whose cpu and memory would be used to a similar share."""

    name = "BalancedResourceAllocation"
    always = Scope.PODS

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """0 as soon as one of them is full."""
        cpu = at.ratio(filled(pod, at, CPU), at.allocatable(CPU))
        memory = at.ratio(filled(pod, at, MEMORY), at.allocatable(MEMORY))
        even = at.truncate((1 - abs(cpu - memory)) * float(MAX_SCORE))
        return at.where((cpu >= 1) | (memory >= 1), 0, even)


class ResourceLimitsPriority(NodePriority):
    """1 for nodes that can hold the pod's cpu or memory limit, else 0."""

    name = "ResourceLimitsPriority"

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """A limit of 0 is no limit."""
        limits = pod.cls.once("limits", lambda: at.view.accounting.limits(pod.cls.sample))
        holds = at.full(False)  # noqa: FBT003 - a column of False
        for resource in (CPU, MEMORY):
            limit, capacity = limits.native[resource], at.allocatable(resource)
            if limit:
                holds = holds | ((capacity != 0) & (limit <= capacity))
        return holds * 1
