"""NodeResourcesBalancedAllocation: resources that are used up evenly.

From v1.36 on it scores the change in balance, not the balance: an uneven node that becomes more
even beats one that was even before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    arguments_record,
)
from podium.engine.framework.rule import SKIPPED, Everywhere, Scope, ScoreRule
from podium.engine.rows.rows import Flags, Floats, Ints, K, ManyRows, OneRow, Rows, as_int
from podium.engine.rules.resources.block import CPU_MEMORY, BalanceChange, BalanceWithPod, balance
from podium.engine.rules.resources.fit import RESOURCE, ResourceSpec, with_weights
from podium.engine.state.accounting import NATIVE, pod_requests, rounded
from podium.engine.state.pod_class import once_per_requests
from podium.objects.field_errors import child, duplicate, invalid
from podium.objects.go_types import Slice
from podium.objects.names import is_scalar, quoted

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """Resources whose utilization should be balanced."""

    resources: tuple[ResourceSpec, ...] = ()


def _complete_balanced(
    found: NodeResourcesBalancedAllocationArgs, _: FeatureGates
) -> NodeResourcesBalancedAllocationArgs:
    return replace(found, resources=with_weights(found.resources))


def _check_balanced(
    found: NodeResourcesBalancedAllocationArgs, path: str, _: FeatureGates
) -> Errors:
    """Each resource may be there once, with the weight 1."""
    seen = set()
    for index, resource in enumerate(found.resources):
        here = child(path, f"resources[{index}]")
        if resource.name in seen:
            yield duplicate(f"{here}.name", quoted(resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{here}.weight", str(resource.weight), "must be 1")


NODE_RESOURCES_BALANCED_ALLOCATION_ARGUMENTS: Final = Arguments(
    arguments_record(NodeResourcesBalancedAllocationArgs, resources=Slice(RESOURCE)),
    _check_balanced,
    _complete_balanced,
)


class NodeResourcesBalancedAllocation(ScoreRule):
    """Prefers nodes whose resources become more evenly requested: 50 + (50 + change) / 2."""

    name = "NodeResourcesBalancedAllocation"
    formula = "50 + (50 + the change of balance that the pod makes) / 2; 100 is even, 0 uneven"
    always = Scope.RESOURCES
    keyed_by_form = True

    def __init__(
        self, resources: tuple[str, ...] = ("cpu", "memory"), *, of_change: bool = True
    ) -> None:
        """*of_change*: score what the pod does to the balance; otherwise the balance with it."""
        self.resources = resources
        self.of_change = of_change
        if not of_change:
            self.formula = "the balance with the pod: 100 is even, 50 uneven"

    def row_key(self, cls: PodClass) -> Hashable:
        """The requests that are scored."""
        return tuple(_balanced_requests(cls).items())

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
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
        with_pod = _balance(at, after, counted)
        if not self.of_change:
            return with_pod
        change = with_pod - _balance(at, before, counted)
        return 50 + at.divide(50 + change, 2)

    def of_block(self, pod: Incoming, view: View) -> BalanceWithPod | BalanceChange | None:
        """The same for cpu and memory."""
        if list(self.resources) != CPU_MEMORY:
            return None
        wanted = _balanced_requests(pod.cls)
        amounts = [wanted.get(name, 0) for name in CPU_MEMORY]
        return balance(amounts, of_change=self.of_change)

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
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


@once_per_requests
def _balanced_requests(cls: PodClass) -> dict[str, int]:
    """The pod's requests, without defaults for none."""
    exact = pod_requests(cls.sample, status=True)
    return {name: rounded(name, number) for name, number in exact.items()}


def _balanced(
    found: NodeResourcesBalancedAllocationArgs, context: PluginContext
) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(
        tuple(resource.name for resource in found.resources),
        of_change=context.choices.balance == "change",
    )


NODE_RESOURCES_BALANCED_ALLOCATION: Final = PluginDeclaration(
    "NodeResourcesBalancedAllocation",
    "preScore score",
    "resources used up evenly",
    score=_balanced,
    arguments=NODE_RESOURCES_BALANCED_ALLOCATION_ARGUMENTS,
    weight=1,
)
