"""v1.36 rules on resources: NodeResourcesFit and NodeResourcesBalancedAllocation.

NodeResourcesBalancedAllocation scores the change in balance, not the balance: an uneven node that
becomes more even beats one that was even before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import Events, PluginDeclaration, Requests
from podium.engine.framework.rule import (
    SKIPPED,
    BitFilter,
    Everywhere,
    FilterRule,
    Scope,
    ScoreRule,
)
from podium.engine.rows.rows import Flags, Floats, Ints, K, ManyRows, OneRow, Rows, as_int
from podium.engine.rules.devices.device_counts import DEVICE_KINDS, device_counts
from podium.engine.rules.devices.extended_resources import may_be_served
from podium.engine.rules.resources.shared import (
    ResourceNumbers,
    lacking_pods,
    lacking_room,
    room_keys,
    shape_score,
)
from podium.engine.rules.resources.v1_36_arguments import (
    NODE_RESOURCES_BALANCED_ALLOCATION_ARGUMENTS,
    NODE_RESOURCES_FIT_ARGUMENTS,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from podium.engine.rules.resources.v1_36_block import (
    CPU_MEMORY,
    BalanceChange,
    LeastAllocated,
    NativeFit,
    balance_change,
    least_allocated,
)
from podium.engine.rules.resources.v1_36_wakeups import ResourceHints
from podium.engine.rules.v1_36 import MAX_SCORE
from podium.engine.state.accounting import NATIVE
from podium.engine.state.int64 import wrap
from podium.engine.state.pod_requests import FLOORS, pod_requests, rounded
from podium.engine.state.verdicts import Reason
from podium.objects.resource_names import is_extended, is_scalar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.devices import DeviceClass

TOO_MANY_PODS = Reason("Too many pods")
#: No words of its own: marks a node that is too small even when empty.
NODE_TOO_SMALL = Reason("", curable=False)


@cache
def _insufficient(name: str) -> Reason:
    return Reason(f"Insufficient {name}")


class NodeResourcesFit(BitFilter):
    """The node must have room for one more pod and for all its requests.

    Resources that the pod does not request are not checked.
    """

    name = "NodeResourcesFit"
    kinds = ("DeviceClass",)
    always = Scope.RESOURCES
    keyed_by_form = True

    def __init__(
        self,
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
    ) -> None:
        self.ignored = ignored
        self.ignored_groups = ignored_groups

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests."""
        return (cls.wanted, tuple(cls.scalars.items()))

    def _checked(self, cls: PodClass, view: View) -> tuple[tuple[str, int, int], ...]:
        """Name, column and amount of each requested resource, extended ones by name."""
        return cls.once(
            ("fit", self.ignored, self.ignored_groups), lambda: tuple(self._resources(cls, view))
        )

    def _resources(self, cls: PodClass, view: View) -> list[tuple[str, int, int]]:
        native = [(name, i, cls.wanted[i]) for i, name in enumerate(NATIVE) if cls.wanted[i] > 0]
        names = {column: name for name, column in view.nodes.resources.items()}
        # A sum that wrapped below nothing counts as nothing.
        scalars = sorted((names[c], c, number) for c, number in cls.scalars.items() if number > 0)
        return native + [s for s in scalars if not self._is_ignored(s[0])]

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def reasons_of(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Pods, then resources; last whether the node is too small even when empty."""
        return pod.cls.once(
            ("fit reasons", self.ignored, self.ignored_groups), lambda: self._reasons(pod.cls, view)
        )

    def _reasons(self, cls: PodClass, view: View) -> tuple[Reason, ...]:
        names = [_insufficient(name) for name, _, _ in self._checked(cls, view)]
        return (TOO_MANY_PODS, *names, NODE_TOO_SMALL)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A bit for each resource of which too little is left, and one for a node too small."""
        checked = self._checked(pod.cls, at.view)
        served = at.view.catalog.device_classes.served
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
        """The same for native resources, if no devices serve any."""
        if view.catalog.device_classes.served:
            return None
        checked = self._checked(pod.cls, view)
        columns = [column for _, column, _ in checked]
        if columns != list(range(len(columns))) or len(columns) > len(NATIVE):
            return None
        wanted = [amount for _, _, amount in checked]
        return NativeFit(self.name, self.reasons_of(pod, view), wanted)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """Every resource of which too little is left, with the numbers."""
        checked = self._checked(pod.cls, at.view)
        if at.modified:
            yield from lacking_pods(TOO_MANY_PODS, at)
            for name, column, wanted in checked:
                if _lacks(as_int(at.allocatable(column)), as_int(at.requested(column)), wanted):
                    yield from lacking_room(_insufficient(name), name, column, wanted, at)
            return
        numbers = memo.get(self.name)
        if numbers is None:
            named = ((_insufficient(n).text, n, column, wanted) for n, column, wanted in checked)
            numbers = memo[self.name] = ResourceNumbers(at.view, named)
        yield from numbers.lacking(TOO_MANY_PODS, at.row, _lacks)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """The resource numbers of the row."""
        return room_keys([column for _, column, _ in self._checked(pod.cls, at.view)], at)


def _lacks(allocatable: int, requested: int, wanted: int) -> bool:
    return wanted > wrap(allocatable - requested)


_STRATEGIES: Final = {
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
        wanted = _scored_requests(cls)
        devices = any(map(wanted.get, self._of_devices))
        return Scope.OBJECTS if devices else Scope.RESOURCES

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The weighted mean over the resources that the node has."""
        total = at.full(0)
        weights: Ints[K] | int = 0
        served = at.view.catalog.device_classes.served if self._of_devices else {}
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

    def of_block(self, pod: Incoming, view: View) -> LeastAllocated | None:  # noqa: ARG002
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
        return f"{self.strategy}, the mean of {mean}: {_STRATEGIES[self.strategy]}"

    def numbers(self, pod: Incoming, at: OneRow) -> Iterator[ScoreNumber]:
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


def _scored_requests(cls: PodClass) -> dict[str, int]:
    """The requests that are scored: with defaults for none, without pod-level resources."""
    return cls.requests.once("scored requests", lambda: _compute_scored_requests(cls))


def _compute_scored_requests(cls: PodClass) -> dict[str, int]:
    exact = pod_requests(cls.sample, pod_level=False, floors=FLOORS)
    return {name: rounded(name, number) for name, number in exact.items()}


class NodeResourcesBalancedAllocation(ScoreRule):
    """Prefers nodes whose resources become more evenly requested: 50 + (50 + change) / 2."""

    name = "NodeResourcesBalancedAllocation"
    formula = "50 + (50 + the change of balance that the pod makes) / 2; 100 is even, 0 uneven"
    always = Scope.RESOURCES
    keyed_by_form = True

    def __init__(self, resources: tuple[str, ...] = ("cpu", "memory")) -> None:
        self.resources = resources

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests that are scored."""
        return tuple(_balanced_requests(cls).items())

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Skipped for a pod that requests none of the resources."""
        wanted = _balanced_requests(pod.cls)
        return None if any(wanted.get(name, 0) for name in self.resources) else SKIPPED

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """From the balance with the pod, minus that without it."""
        before: list[Floats[K]] = []
        after: list[Floats[K]] = []
        counted: list[Flags[K]] = []
        for name in self.resources:
            wanted = _balanced_requests(pod.cls).get(name, 0)
            column = at.view.nodes.resources.get(name)
            if column is None or (name not in NATIVE and (not wanted or not is_scalar(name))):
                continue
            capacity, used = at.allocatable(column), at.requested(column)
            present = at.offers(column)
            before.append(at.where(present, _share(at, used, capacity), 0.0))
            after.append(at.where(present, _share(at, at.wrap(used + wanted), capacity), 0.0))
            counted.append(present)
        change = _balance(at, after, counted) - _balance(at, before, counted)
        return 50 + at.divide(50 + change, 2)

    def of_block(self, pod: Incoming, view: View) -> BalanceChange | None:  # noqa: ARG002
        """The same for cpu and memory."""
        if list(self.resources) != CPU_MEMORY:
            return None
        wanted = _balanced_requests(pod.cls)
        return balance_change([wanted.get(name, 0) for name in CPU_MEMORY])

    def numbers(self, pod: Incoming, at: OneRow) -> Iterator[ScoreNumber]:
        """What is requested of each resource without the pod and with it, and the capacity."""
        for name in self.resources:
            column = at.view.nodes.resources.get(name)
            if column is not None:
                used, there = as_int(at.requested(column)), as_int(at.allocatable(column))
                wanted = _balanced_requests(pod.cls).get(name, 0)
                yield ScoreNumber(f"{name} before", used, there, name)
                yield ScoreNumber(f"{name} after", used + wanted, there, name)


def _share(at: Rows[K], used: Ints[K], capacity: Ints[K]) -> Floats[K]:
    share = at.ratio(used, capacity)
    return at.where(share > 1, 1.0, share)


def _balance(at: Rows[K], shares: list[Floats[K]], counted: list[Flags[K]]) -> Ints[K]:
    """100 for equal fractions, less the more they deviate."""
    if len(shares) < 2:
        return at.full(100)
    if len(shares) == 2:
        both = abs(shares[0] - shares[1]) / 2
        deviation = at.where(counted[0] & counted[1], both, 0.0)
    else:
        number = at.full(0)
        for flag in counted:
            number = number + flag * 1
        deviation = _deviation(at, shares, counted, number)
    return at.truncate((1 - deviation) * 100.0)


def _deviation(
    at: Rows[K], shares: list[Floats[K]], counted: list[Flags[K]], number: Ints[K]
) -> Floats[K]:
    some = at.where(number == 0, 1, number)
    total = at.full(0) * 1.0
    for share in shares:
        total = total + share
    mean = total / some
    squares = at.full(0) * 1.0
    for share, flag in zip(shares, counted, strict=True):
        squares = squares + at.where(flag, (share - mean) * (share - mean), 0.0)
    several = at.sqrt(squares / some)
    # Of two, half their distance: the same number, computed as upstream does.
    first, last = _extremes(at, shares, counted)
    pair = abs(first - last) / 2
    return at.where(number < 2, 0.0, at.where(number == 2, pair, several))


def _extremes(
    at: Rows[K], shares: list[Floats[K]], counted: list[Flags[K]]
) -> tuple[Floats[K], Floats[K]]:
    low, high = at.full(2) * 1.0, at.full(-1) * 1.0
    for share, flag in zip(shares, counted, strict=True):
        low = at.where(flag & (share < low), share, low)
        high = at.where(flag & (share > high), share, high)
    return low, high


def _balanced_requests(cls: PodClass) -> dict[str, int]:
    """The pod's requests, without defaults for none."""
    return cls.requests.once("balanced requests", lambda: _compute_balanced_requests(cls))


def _compute_balanced_requests(cls: PodClass) -> dict[str, int]:
    exact = pod_requests(cls.sample, status=True)
    return {name: rounded(name, number) for name, number in exact.items()}


def _fit(found: NodeResourcesFitArgs) -> NodeResourcesFit:
    return NodeResourcesFit(
        frozenset(found.ignored_resources), frozenset(found.ignored_resource_groups)
    )


def _fit_score(found: NodeResourcesFitArgs) -> NodeResourcesFitScore:
    strategy = found.scoring_strategy
    assert strategy is not None  # the defaults bring one
    ratio = strategy.requested_to_capacity_ratio
    return NodeResourcesFitScore(
        strategy.type,
        tuple((resource.name, resource.weight) for resource in strategy.resources),
        tuple((point.utilization, point.score) for point in ratio.shape) if ratio else (),
    )


def _fit_events(_: Sequence[FilterRule], requests: Requests) -> Events:
    room = ResourceHints(requests)
    return {
        "Pod Delete": room.pod_gone,
        "Pod UpdatePodScaleDown": room.scaled_down,
        "Node Add": room.node_grew,
        "Node UpdateNodeAllocatable": room.node_grew,
        "DeviceClass Add": room.device_class,
        "DeviceClass Update": room.device_class,
    }


def _balanced(
    found: NodeResourcesBalancedAllocationArgs,
) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(tuple(resource.name for resource in found.resources))


NODE_RESOURCES_FIT: Final = PluginDeclaration(
    "NodeResourcesFit",
    "preFilter filter preScore score placementScore",
    "room for what the pod requests",
    filter=_fit,
    score=_fit_score,
    arguments=NODE_RESOURCES_FIT_ARGUMENTS,
    weight=1,
    pre_filter_error='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    events=_fit_events,
)

NODE_RESOURCES_BALANCED_ALLOCATION: Final = PluginDeclaration(
    "NodeResourcesBalancedAllocation",
    "preScore score",
    "resources used up evenly",
    score=_balanced,
    arguments=NODE_RESOURCES_BALANCED_ALLOCATION_ARGUMENTS,
    weight=1,
)
