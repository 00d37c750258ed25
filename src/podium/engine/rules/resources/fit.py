"""NodeResourcesFit: room for what the pod requests, and a score of the utilization.

Upstream: the queueing hints of noderesources, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    Requests,
    arguments_record,
)
from podium.engine.framework.rule import Scope, ScoreRule, Watched
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, as_int
from podium.engine.rules.devices.device_counts import DEVICE_KINDS, device_counts
from podium.engine.rules.devices.extended_resources import may_be_served
from podium.engine.rules.plugins import (
    MAX_SCORE,
    MAX_WEIGHT,
    POINT,
    ShapePoint,
    holds_place,
    label_key_errors,
    shape_errors,
)
from podium.engine.rules.resources.block import (
    CPU_MEMORY,
    LeastAllocated,
    NativeFit,
    least_allocated,
)
from podium.engine.rules.resources.shared import (
    TOO_MANY_PODS,
    RoomFilter,
    Wanted,
    shape_score,
)
from podium.engine.state.accounting import FLOORS, NATIVE, pod_requests, rounded, wrap
from podium.engine.state.pod_class import KeptPerClass, once_per_requests
from podium.engine.state.verdicts import Reason
from podium.objects.field_errors import child, forbidden, invalid, required, unsupported
from podium.objects.go_types import INT64, STRING, STRINGS, Slice, go_json, named, record
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.names import is_extended, is_scalar, quoted
from podium.objects.quantity import milli, value

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.devices import DeviceClass

#: No words of its own: marks a node that is too small even when empty.
NODE_TOO_SMALL = Reason("", curable=False)

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and its weight."""

    name: str = ""
    weight: int = 0


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
RESOURCE: Final = record("v1.ResourceSpec", ResourceSpec, name=STRING, weight=INT64)


def with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """cpu and memory if there are none; a weight of 0 means 1."""
    return tuple(replace(each, weight=each.weight or 1) for each in resources or DEFAULT_RESOURCES)


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The function from utilization to score of RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores nodes."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Resources that are not checked, and how nodes are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


def _complete_fit(found: NodeResourcesFitArgs, _: FeatureGates) -> NodeResourcesFitArgs:
    """LeastAllocated if there is no strategy; a strategy that is given must have a type."""
    given = found.scoring_strategy or ScoringStrategy("LeastAllocated")
    return replace(found, scoring_strategy=replace(given, resources=with_weights(given.resources)))


def _check_fit(found: NodeResourcesFitArgs, path: str, _: FeatureGates) -> Errors:
    for index, name in enumerate(found.ignored_resources):
        yield from label_key_errors(name, child(path, f"ignoredResources[{index}]"))
    for index, group in enumerate(found.ignored_resource_groups):
        here = child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            yield invalid(here, quoted(group), "resource group name can't contain '/'")
        yield from label_key_errors(group, here)
    if found.scoring_strategy is None:
        yield required(child(path, "scoringStrategy"), "ScoringStrategy field is required")
    else:
        yield from _strategy_errors(found.scoring_strategy, child(path, "scoringStrategy"))


def _strategy_errors(found: ScoringStrategy, path: str) -> Errors:
    if found.type not in _STRATEGIES:
        yield unsupported(f"{path}.type", go_json(found.type), _STRATEGIES)
    for index, resource in enumerate(found.resources):
        if not 0 < resource.weight <= MAX_WEIGHT:
            yield invalid(
                f"{path}.resources[{index}].weight",
                str(resource.weight),
                f"resource weight of {resource.name} not in valid range (0, 100]",
            )
    ratio, here = found.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if found.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield required(here, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from shape_errors(ratio.shape, f"{here}.shape")
    elif ratio is not None:
        yield forbidden(here, "must be nil when type is not RequestedToCapacityRatio")


_RATIO = record(
    "v1.RequestedToCapacityRatioParam", RequestedToCapacityRatioParam, shape=Slice(POINT)
)
_STRATEGY = record(
    "v1.ScoringStrategy",
    ScoringStrategy,
    type=named("v1.ScoringStrategyType"),
    resources=Slice(RESOURCE),
    requested_to_capacity_ratio=_RATIO,
)
NODE_RESOURCES_FIT_ARGUMENTS: Final = Arguments(
    arguments_record(
        NodeResourcesFitArgs,
        ignored_resources=STRINGS,
        ignored_resource_groups=STRINGS,
        scoring_strategy=_STRATEGY,
    ),
    _check_fit,
    _complete_fit,
    checked_as="NodeResourcesFitArgs",
)


class NodeResourcesFit(RoomFilter):
    """The node must have room for one more pod and for all its requests.

    Resources that the pod does not request are not checked.
    """

    name = "NodeResourcesFit"
    kinds = ("DeviceClass",)
    always = Scope.RESOURCES
    too_many_pods = TOO_MANY_PODS
    last_reasons = (NODE_TOO_SMALL,)

    def __init__(
        self,
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self.ignored = ignored
        self.ignored_groups = ignored_groups
        self._kept_resources: KeptPerClass[tuple[Wanted, ...]] = KeptPerClass()

    def watched(self, cls: PodClass) -> Watched:
        """Devices may serve extended resources; nothing else is looked at."""
        return Watched.ANYTHING if cls.scalars else Watched.NOTHING

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """Which of the requested resources devices serve."""
        served = view.catalog.device_classes.served
        if not served or not pod.cls.scalars:
            return None
        return tuple(name for name, _, _ in self.checked(pod.cls, view) if name in served)

    def checked(self, cls: PodClass, view: View) -> tuple[Wanted, ...]:
        """Name, column and amount of each requested resource, extended ones by name."""
        return self._kept_resources.of(cls, None, lambda: tuple(self._resources(cls, view)))

    def _resources(self, cls: PodClass, view: View) -> list[Wanted]:
        native = [
            Wanted(name, i, cls.wanted[i]) for i, name in enumerate(NATIVE) if cls.wanted[i] > 0
        ]
        names = {column: name for name, column in view.nodes.resources.items()}
        # A sum that wrapped below nothing counts as nothing.
        scalars = sorted(
            Wanted(names[c], c, number) for c, number in cls.scalars.items() if number > 0
        )
        return native + [s for s in scalars if not self._is_ignored(s[0])]

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A bit for each resource of which too little is left, and one for a node too small."""
        checked = self.checked(pod.cls, at.view)
        served = at.view.catalog.device_classes.served if pod.cls.scalars else {}
        short = (at.pod_count() >= at.allowed_pods()) * 1
        small = 2 << len(checked)
        for i, (name, column, wanted) in enumerate(checked):
            allocatable = at.allocatable(column)
            lacking = wanted > at.wrap(allocatable - at.requested(column))
            if not at.any(lacking):
                continue
            if name in served:
                # Where no device plugin offers it, devices of a class do: DynamicResources decides.
                lacking = lacking & (allocatable > 0)
            short = short | (lacking * (2 << i)) | ((lacking & (wanted > allocatable)) * small)
        return short

    def of_block(self, pod: Incoming, view: View) -> NativeFit | None:
        """The same for native resources, which no devices serve."""
        checked = self.checked(pod.cls, view)
        columns = [column for _, column, _ in checked]
        if columns != list(range(len(columns))) or len(columns) > len(NATIVE):
            return None
        wanted = [amount for _, _, amount in checked]
        return NativeFit(self.name, self.reasons_of(pod, view), wanted)

    def lacks(self, allocatable: int, requested: int, wanted: int) -> bool:
        """What is left is compared with what is wanted."""
        return wanted > wrap(allocatable - requested)


_FORMULAS: Final = {
    "LeastAllocated": "(capacity - requested) * 100 / capacity",
    "MostAllocated": "requested * 100 / capacity",
    "RequestedToCapacityRatio": "the utilization, scored by the line of the shape",
}


class NodeResourcesFitScore(ScoreRule):
    """Scores the utilization of weighted resources by one of three strategies."""

    name = "NodeResourcesFit"
    keyed_by_form = True

    def __init__(
        self,
        strategy: str = "LeastAllocated",
        resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1)),
        shape: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.strategy = strategy
        self.resources = resources
        #: Resources that devices may serve; their number is read from slices and claims.
        self._of_devices = frozenset(name for name, _ in resources if may_be_served(name))
        if self._of_devices:
            self.kinds = DEVICE_KINDS
        #: Points (utilization, score), the score on the scale of 100.
        self.shape = tuple((x, y * 10) for x, y in shape)

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests that are scored."""
        return tuple(_scored_requests(cls).items())

    def scope(self, cls: PodClass) -> Scope:
        """The numbers of the row; devices as well, if they may serve a resource that is scored."""
        return Scope.CLUSTER if self._wants_devices(cls) else Scope.RESOURCES

    def _wants_devices(self, cls: PodClass) -> bool:
        return any(map(_scored_requests(cls).get, self._of_devices))

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The weighted mean over the resources that the node has."""
        total = at.full(0)
        weights: Ints[K] | int = 0
        devices = self._wants_devices(pod.cls)
        served = at.view.catalog.device_classes.served if devices else {}
        for name, weight in self.resources:
            wanted = _scored_requests(pod.cls).get(name, 0)
            column = at.view.nodes.resources.get(name)
            if name not in NATIVE and (not wanted or not is_scalar(name)):
                continue
            if column is None and name not in served:
                continue
            capacity = at.full(0) if column is None else at.allocatable(column)
            if column is None:
                used = capacity
            else:
                used = at.nonzero_requested(column) if column < 2 else at.requested(column)
            if name in served:
                capacity, used = _with_devices(at, capacity, used, served[name])
            rate = self._rate(at, at.wrap(used + wanted), capacity)
            counted = capacity != 0 if column is None or name in served else at.offers(column)
            if self.shape:
                counted = (rate > 0) & counted
            total = total + at.where(counted, rate * weight, 0)
            weights = weights + counted * weight
        if self.shape:
            return _rounded(at, total, at.full(0) + weights)
        return at.divide(total, weights)

    def of_block(self, pod: Incoming, view: View) -> LeastAllocated | None:
        """The same for the strategy LeastAllocated, of cpu and memory."""
        if self.strategy != "LeastAllocated" or [name for name, _ in self.resources] != CPU_MEMORY:
            return None
        wanted = _scored_requests(pod.cls)
        return least_allocated(
            [wanted.get(name, 0) for name in CPU_MEMORY], [weight for _, weight in self.resources]
        )

    @property
    def formula(self) -> str:  # type: ignore[override]
        """The strategy in words."""
        mean = " and ".join(
            name if weight == 1 else f"{name} (weight {weight})" for name, weight in self.resources
        )
        return f"{self.strategy}, the mean of {mean}: {_FORMULAS[self.strategy]}"

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """What is requested of each resource with the pod on the node, and the capacity."""
        for name, _ in self.resources:
            column = at.view.nodes.resources.get(name)
            if column is not None:
                used = at.nonzero_requested(column) if column < 2 else at.requested(column)
                total = as_int(used) + _scored_requests(pod.cls).get(name, 0)
                yield ScoreNumber(name, total, as_int(at.allocatable(column)), name)

    def _rate(self, at: Rows[K], used: Ints[K], capacity: Ints[K]) -> Ints[K]:
        if self.strategy == "LeastAllocated":
            left = at.divide(at.wrap(at.wrap(capacity - used) * MAX_SCORE), capacity)
            return at.where(used > capacity, 0, left)
        if self.strategy == "MostAllocated":
            most = at.where(used > capacity, capacity, used)
            return at.divide(at.wrap(most * MAX_SCORE), capacity)
        percent = at.divide(at.wrap(used * 100), capacity)
        return shape_score(at, self.shape, at.where(used > capacity, 100, percent))


def _with_devices(
    at: Rows[K], capacity: Ints[K], used: Ints[K], device_class: DeviceClass
) -> tuple[Ints[K], Ints[K]]:
    """Devices of the class where the node itself offers nothing of the resource."""
    counts = at.map(lambda row: device_counts(row, device_class)[0])
    in_use = at.map(lambda row: device_counts(row, device_class)[1])
    by_devices = (capacity == 0) & (counts > 0)
    return at.where(by_devices, counts, capacity), at.where(by_devices, in_use, used)


def _rounded(at: Rows[K], total: Ints[K], weights: Ints[K]) -> Ints[K]:
    """The mean, half rounded up; 0 where nothing counted."""
    mean = at.ratio(total, at.where(weights == 0, 1, weights))
    return at.truncate(mean + 0.5)


@once_per_requests
def _scored_requests(cls: PodClass) -> dict[str, int]:
    """The requests that are scored: with defaults for none, without pod-level resources."""
    exact = pod_requests(cls.sample, pod_level=False, floors=FLOORS)
    return {name: rounded(name, number) for name, number in exact.items()}


def _fit_score(found: NodeResourcesFitArgs, _: PluginContext) -> NodeResourcesFitScore:
    strategy = found.scoring_strategy
    assert strategy is not None  # the defaults bring one
    ratio = strategy.requested_to_capacity_ratio
    return NodeResourcesFitScore(
        strategy.type,
        tuple((resource.name, resource.weight) for resource in strategy.resources),
        tuple((point.utilization, point.score) for point in ratio.shape) if ratio else (),
    )


def _fit_events(context: EventContext) -> Events:
    room = ResourceHints(context.requests)
    return {
        "Pod Delete": room.pod_gone,
        "Pod UpdatePodScaleDown": room.scaled_down,
        "Node Add": room.node_grew,
        "Node UpdateNodeAllocatable": room.node_grew,
        "DeviceClass Add": room.device_class,
        "DeviceClass Update": room.device_class,
    }


class ResourceHints(msgspec.Struct, frozen=True):
    """Room was made, or may have been, for what the pod asks for."""

    requests: Requests

    def pod_gone(self, _waiting: Pod, old: Pod, _new: None) -> bool:
        """Any pod that took room went."""
        return holds_place(old)

    def scaled_down(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        """The pod itself asks for less, or an assigned one for less of what it asks for."""
        if new.uid == waiting.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = self.requests(old), self.requests(new)
        return any(
            amount and before.get(name, 0) > after.get(name, 0)
            for name, amount in self.requests(waiting).items()
        )

    def node_grew(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        """The pod fits on the node when empty, and the node is new or has more of its wants."""
        wants = {name: amount for name, amount in self.requests(waiting).items() if amount}
        room = {name: allocatable(new, name) for name in (*wants, "pods")}
        if room["pods"] < 1 or any(room[name] < amount for name, amount in wants.items()):
            return False
        return old is None or any(room[name] > allocatable(old, name) for name in room)

    def device_class(self, waiting: Pod, _old: object, _new: object) -> bool:
        """A class of devices may stand for an extended resource that the pod asks for."""
        return any(amount and is_extended(name) for name, amount in self.requests(waiting).items())


def allocatable(node: Node, name: str) -> int:
    """How much of a resource a node offers."""
    raw = (node.status.allocatable or {}).get(name, 0)
    return milli(raw) if name == "cpu" else value(raw)


NODE_RESOURCES_FIT: Final = PluginDeclaration(
    "NodeResourcesFit",
    "preFilter filter preScore score placementScore",
    "room for what the pod requests",
    filter=lambda found, _: NodeResourcesFit(
        frozenset(found.ignored_resources), frozenset(found.ignored_resource_groups)
    ),
    score=_fit_score,
    arguments=NODE_RESOURCES_FIT_ARGUMENTS,
    weight=1,
    pre_filter_error='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    events=_fit_events,
)
