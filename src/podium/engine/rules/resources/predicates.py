"""v1.13 rules on resources: whether the requests fit, and the utilization of the node.

The priorities count default requests for containers without cpu or memory requests, for the pod
and for the pods on the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import (
    PolicyArgument,
    PredicateDeclaration,
    PriorityDeclaration,
    plain,
)
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, ScoreRule, all_rows
from podium.engine.rows.rows import Ints, K, ManyRows, Rows, as_int
from podium.engine.rules.node_affinity import MatchNodeSelector
from podium.engine.rules.nodes import HostName
from podium.engine.rules.pod_affinity import metadata_unavailable
from podium.engine.rules.ports import PodFitsHostPorts
from podium.engine.rules.priorities import (
    AUTOSCALER_PROVIDER,
    BOTH_PROVIDERS,
    DEFAULT_PROVIDER,
    HIGHEST_PRIORITY,
)
from podium.engine.rules.resources.shared import (
    RoomFilter,
    Wanted,
    insufficient,
    shape_score,
)
from podium.engine.state.accounting import CPU, MEMORY, NATIVE, wrap
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.verdicts import Reason
from podium.errors import ConfigError
from podium.objects.kinds.meta import Int64
from podium.objects.names import is_extended

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.rows.rows import OneRow
    from podium.engine.state.accounting import Amounts
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

_MAX_UTILIZATION = 100


class PolicyShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function from utilization to score."""

    utilization: Int64 = 0
    score: Int64 = 0


class CapacityRatioArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Score a node by its utilization with the pod on it."""

    shape: list[PolicyShapePoint] = []


def shape_errors(points: list[tuple[int, int]]) -> Iterator[str]:
    """What is wrong with a shape, in kube-scheduler's words, order and spelling."""
    if not points:
        yield "at least one point must be specified"
    for i, ((before, _), (after, _)) in enumerate(pairwise(points)):
        if before >= after:
            yield (
                "utilization values must be sorted. "
                f"Utilization[{i}]=={before} >= Utilization[{i + 1}]=={after}"
            )
    for i, (utilization, score) in enumerate(points):
        found = f"Utilization[{i}]=={utilization}"
        if utilization < 0:
            yield f"utilization values must not be less than 0. {found}"
        if utilization > _MAX_UTILIZATION:
            yield f"utilization values must not be greater than {_MAX_UTILIZATION}. {found}"
        if score < 0:
            yield f"score values must not be less than 0. Score[{i}]=={score}"
        if score > HIGHEST_PRIORITY:
            yield f"score valuses not be greater than {HIGHEST_PRIORITY}. Score[{i}]=={score}"


class PodFitsResources(RoomFilter):
    """The node must have room for one more pod and for all its requests.

    A pod without any request only counts against the number of pods. Otherwise cpu, memory and
    ephemeral storage are all checked, also those without a request: an overcommitted node is
    rejected.
    """

    name = "PodFitsResources"
    too_many_pods = insufficient("pods")

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        super().__init__()
        #: Extended resources that only an extender looks after.
        self.ignored = ignored
        self._kept: KeptPerClass[list[Wanted]] = KeptPerClass()

    def scope(self, cls: PodClass) -> Scope:
        """The resource numbers of the row; the cluster if resources are ignored for an extender.

        Upstream forgets which resources are ignored when it has no predicate metadata.
        """
        return Scope.CLUSTER if self.ignored and cls.scalars else Scope.RESOURCES

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: only resource numbers of the row are read."""
        return all_rows(at)

    def checked(self, cls: PodClass, view: View) -> Sequence[Wanted]:
        """All native resources, then scalar ones by name; none for a pod without any request."""
        if not any(cls.wanted) and not cls.scalars:
            return ()
        # The list of ignored resources is lost along with the facts about other pods.
        lost = self.ignored and cls.scalars and metadata_unavailable(cls, view)
        ignored = self.ignored if not lost else frozenset()
        return self._kept.of(cls, ignored, lambda: _resources_to_check(cls, view, ignored))

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A bit for each resource of which too little is left."""
        short = (at.pod_count() + 1 > at.allowed_pods()) * 1
        bit = 2
        for _, column, wanted in self.checked(pod.cls, at.view):
            lacking = at.allocatable(column) < at.wrap(at.requested(column) + wanted)
            short = short | (lacking * bit)
            bit <<= 1
        return short

    def lacks(self, allocatable: int, requested: int, wanted: int) -> bool:
        """What is there is compared with what would be requested."""
        return allocatable < wrap(requested + wanted)


def _resources_to_check(cls: PodClass, view: View, ignored: frozenset[str]) -> list[Wanted]:
    native = [Wanted(name, i, cls.wanted[i]) for i, name in enumerate(NATIVE)]
    names = {column: name for name, column in view.nodes.resources.items()}
    scalars = sorted(Wanted(names[c], c, number) for c, number in cls.scalars.items())
    return native + [s for s in scalars if not (s.name in ignored and is_extended(s.name))]


class GeneralPredicates(BitFilter):
    """PodFitsResources, HostName, PodFitsHostPorts and MatchNodeSelector, reported together."""

    name = "GeneralPredicates"
    keyed_by_form = True

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        resources = PodFitsResources(ignored)
        self.parts = (resources, HostName(), PodFitsHostPorts(), MatchNodeSelector())
        self._kept: KeptPerClass[list[BitFilter]] = KeptPerClass()

    def row_key(self, cls: PodClass) -> Hashable:
        """What its parts read."""
        return tuple((part.name, part.row_key(cls)) for part in self._active(cls))

    def scope(self, cls: PodClass) -> Scope:
        """That of the resources; of the pods on the row if more than resources is asked for."""
        resources = self.parts[0].scope(cls)
        alone = len(self._active(cls)) == 1
        return resources if alone or not resources.of_row else Scope.PODS

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row, like each of its parts."""
        return all_rows(at)

    def _active(self, cls: PodClass) -> list[BitFilter]:
        """The parts whose scope for pods of this class is not NONE."""
        return self._kept.of(cls, None, lambda: [p for p in self.parts if p.scope(cls)])

    def reasons_of(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """The reasons of the parts, one part after the other."""
        parts = self._active(pod.cls)
        return tuple(reason for part in parts for reason in part.reasons_of(pod, view))

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The bits of the parts, shifted apart."""
        first, *others = self._active(pod.cls)
        bits, before, shift = first.bits(pod, at), first, 0
        for part in others:
            shift += len(before.reasons_of(pod, at.view))
            bits, before = bits | (part.bits(pod, at) << shift), part
        return bits

    def cause_parts(self, cls: PodClass) -> list[BitFilter]:
        """The parts, one after the other."""
        return self._active(cls)


class _RequestedScore(ScoreRule):
    """A score of what is requested of cpu and memory with the pod on the node."""

    always = Scope.RESOURCES
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests as scores count them."""
        return cls.nonzero_requests

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """What is requested of cpu and memory with the pod on the node, and their capacity."""
        for resource in (CPU, MEMORY):
            name, there = NATIVE[resource], as_int(at.allocatable(resource))
            yield ScoreNumber(name, as_int(requested_with(pod, at, resource)), there, name)


class _UtilizationPriority(_RequestedScore):
    """The mean of a score for cpu and a score for memory."""

    def rate(self, at: Rows[K], requested: Ints[K], capacity: Ints[K]) -> Ints[K]:
        """The score of one resource."""
        raise NotImplementedError

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The mean of both; integer division at each step, which decides ties."""
        cpu, memory = (
            self.rate(at, requested_with(pod, at, resource), at.allocatable(resource))
            for resource in (CPU, MEMORY)
        )
        return at.divide(cpu + memory, 2)


def requested_with(pod: Incoming, at: Rows[K], resource: int) -> Ints[K]:
    """What is requested on the node with the pod on it."""
    return at.wrap(at.nonzero_requested(resource) + pod.cls.nonzero_requests[resource])


class LeastRequestedPriority(_UtilizationPriority):
    """Prefers nodes with much left: (capacity - requested) * 10 / capacity."""

    name = "LeastRequestedPriority"
    formula = "the mean of cpu and memory: (capacity - requested) * 10 / capacity"

    def rate(self, at: Rows[K], requested: Ints[K], capacity: Ints[K]) -> Ints[K]:
        """0 for an unknown or exceeded capacity."""
        share = at.divide(at.wrap(at.wrap(capacity - requested) * HIGHEST_PRIORITY), capacity)
        return at.where(requested > capacity, 0, share)


class MostRequestedPriority(_UtilizationPriority):
    """Prefers nodes with much requested: requested * 10 / capacity."""

    name = "MostRequestedPriority"
    formula = "the mean of cpu and memory: requested * 10 / capacity"

    def rate(self, at: Rows[K], requested: Ints[K], capacity: Ints[K]) -> Ints[K]:
        """0 for an unknown or exceeded capacity."""
        share = at.divide(at.wrap(requested * HIGHEST_PRIORITY), capacity)
        return at.where(requested > capacity, 0, share)


class RequestedToCapacityRatioPriority(_UtilizationPriority):
    """Scores the utilization by a function shape: points (utilization, score)."""

    name = "RequestedToCapacityRatioPriority"
    formula = "the mean of cpu and memory: the utilization, scored by the line of the shape"

    def __init__(
        self,
        shape: Sequence[tuple[int, int]] = ((0, HIGHEST_PRIORITY), (100, 0)),
        name: str = "RequestedToCapacityRatioPriority",
    ) -> None:
        self.shape = tuple(shape)
        self.name = name

    def rate(self, at: Rows[K], requested: Ints[K], capacity: Ints[K]) -> Ints[K]:
        """An unknown or exceeded capacity counts as full."""
        left = at.divide(at.wrap(at.wrap(capacity - requested) * 100), capacity)
        full = (capacity == 0) | (requested > capacity)
        return shape_score(at, self.shape, at.where(full, 100, 100 - left))


class BalancedResourceAllocation(_RequestedScore):
    """Prefers nodes where cpu and memory are requested to similar fractions."""

    name = "BalancedResourceAllocation"
    formula = "10 * (1 - the difference between the requested fractions of cpu and memory)"

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """0 where cpu or memory is requested in full."""
        cpu = at.ratio(requested_with(pod, at, CPU), at.allocatable(CPU))
        memory = at.ratio(requested_with(pod, at, MEMORY), at.allocatable(MEMORY))
        even = at.truncate((1 - abs(cpu - memory)) * float(HIGHEST_PRIORITY))
        return at.where((cpu >= 1) | (memory >= 1), 0, even)


_LIMITS: KeptPerClass[Amounts] = KeptPerClass()


class ResourceLimitsPriority(ScoreRule):
    """1 for nodes that can hold the pod's cpu or memory limit, else 0."""

    name = "ResourceLimitsPriority"
    formula = "1 if the node can hold the pod's cpu or memory limit, else 0"

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the cpu or memory limit fits; a limit of 0 is no limit."""
        accounting, cls = at.view.pods.accounting, pod.cls
        limits = _LIMITS.of(cls, None, lambda: accounting.limits(cls.sample))
        holds = at.flags(False)  # noqa: FBT003 - a column of False
        for resource in (CPU, MEMORY):
            limit, capacity = limits.native[resource], at.allocatable(resource)
            if limit:
                holds = holds | ((capacity != 0) & (limit <= capacity))
        return holds * 1

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The limits of cpu and memory, and the capacity."""
        limits = at.view.pods.accounting.limits(pod.cls.sample)
        for resource in (CPU, MEMORY):
            name, there = NATIVE[resource], as_int(at.allocatable(resource))
            yield ScoreNumber(f"{name} limit", limits.native[resource], there, name)


def _capacity_ratio(argument: CapacityRatioArgument, name: str) -> RequestedToCapacityRatioPriority:
    """The priority, or a `ConfigError` for points that are no function of the utilization."""
    points = [(point.utilization, point.score) for point in argument.shape]
    error = next(shape_errors(points), None)
    if error:
        raise ConfigError(
            f"invalid RequestedToCapacityRatioPriority arguments: {error}",
            hint="utilization rises from 0 to 100, scores are 0 to 10",
        )
    return RequestedToCapacityRatioPriority(points, name)


CAPACITY_RATIO: Final[PolicyArgument[ScoreRule]] = PolicyArgument(
    "requested_to_capacity_ratio_arguments",
    CapacityRatioArgument,
    _capacity_ratio,
    RequestedToCapacityRatioPriority,
    "utilization scored by a line through these points",
    lambda rule: {"shape": [{"utilization": x, "score": y} for x, y in rule.shape]},
)

GENERAL_PREDICATES: Final = PredicateDeclaration(
    "GeneralPredicates",
    "PodFitsResources, HostName, PodFitsHostPorts and MatchNodeSelector together",
    lambda args: GeneralPredicates(args.ignored_resources),
    provided=True,
)

POD_FITS_RESOURCES: Final = PredicateDeclaration(
    "PodFitsResources",
    "the node has room for one more pod and for all that it requests",
    lambda args: PodFitsResources(args.ignored_resources),
)

BALANCED_RESOURCE_ALLOCATION: Final = PriorityDeclaration(
    "BalancedResourceAllocation",
    "cpu and memory would be used to a similar share",
    plain(BalancedResourceAllocation),
    providers=BOTH_PROVIDERS,
)

LEAST_REQUESTED_PRIORITY: Final = PriorityDeclaration(
    "LeastRequestedPriority",
    "most cpu and memory left",
    plain(LeastRequestedPriority),
    providers=(DEFAULT_PROVIDER,),
)

MOST_REQUESTED_PRIORITY: Final = PriorityDeclaration(
    "MostRequestedPriority",
    "most cpu and memory used",
    plain(MostRequestedPriority),
    providers=(AUTOSCALER_PROVIDER,),
)

REQUESTED_TO_CAPACITY_RATIO_PRIORITY: Final = PriorityDeclaration(
    "RequestedToCapacityRatioPriority",
    "utilization scored by a line; without an argument, the emptier the better",
    plain(RequestedToCapacityRatioPriority),
)

RESOURCE_LIMITS_PRIORITY: Final = PriorityDeclaration(
    "ResourceLimitsPriority",
    "the node can hold the pod's cpu or memory limit",
    plain(ResourceLimitsPriority),
    providers=BOTH_PROVIDERS,
    exists="ResourceLimitsPriorityFunction",
)
