"""Arguments of NodeResourcesFit and NodeResourcesBalancedAllocation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.engine.rules.v1_36_arguments import (
    MAX_WEIGHT,
    POINT,
    ShapePoint,
    label_key_errors,
    shape_errors,
)
from podium.objects.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from podium.objects.go_json import go_json
from podium.objects.go_types import INT64, STRING, STRINGS, Slice, named, record
from podium.objects.names import quoted

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
