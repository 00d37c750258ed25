"""What plugins can be told: the arguments of each, with their defaults.

A field that is left out has its default here; what cannot be seen from one field alone (an empty
list that means two resources, a weight of 0 that means 1) is settled by `defaulted`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from podium.objects.durations import SECOND
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from podium.profiles.config.decode import (
    BOOL,
    DURATION_POINTER,
    INT32,
    INT64,
    STRING,
    STRING_MAP,
    STRINGS,
    Field,
    Slice,
    Struct,
    named,
    record,
)

if TYPE_CHECKING:
    from podium.profiles.config.feature_gates import FeatureGates


class PluginArgs(Protocol):
    """The arguments of one plugin."""

    def defaulted(self, gates: FeatureGates) -> PluginArgs:
        """With everything filled in that was left out."""


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and how much it counts."""

    name: str = ""
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the line from utilization (0 to 100) to score (0 to 10)."""

    utilization: int = 0
    score: int = 0


@dataclass(frozen=True, slots=True)
class RatioParam:
    """The line for RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores nodes."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RatioParam | None = None


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many nodes preemption looks at."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def defaulted(self, gates: FeatureGates) -> DefaultPreemptionArgs:  # noqa: ARG002
        """Nothing to settle."""
        return self


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """What required and preferred terms of placed pods are worth to others."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def defaulted(self, gates: FeatureGates) -> InterPodAffinityArgs:  # noqa: ARG002
        """Nothing to settle."""
        return self


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Node affinity that every pod gets on top of its own."""

    added_affinity: NodeAffinity | None = None

    def defaulted(self, gates: FeatureGates) -> NodeAffinityArgs:  # noqa: ARG002
        """Nothing to settle."""
        return self


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Resources that are not checked, and how nodes are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    def defaulted(self, gates: FeatureGates) -> NodeResourcesFitArgs:  # noqa: ARG002
        """LeastAllocated if no strategy is given; one that is given must say its type."""
        given = self.scoring_strategy or ScoringStrategy("LeastAllocated")
        resources = weighted(given.resources or DEFAULT_RESOURCES)
        return replace(self, scoring_strategy=replace(given, resources=resources))


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """Resources that are to be used evenly."""

    resources: tuple[ResourceSpec, ...] = ()

    def defaulted(self, gates: FeatureGates) -> NodeResourcesBalancedAllocationArgs:  # noqa: ARG002
        """cpu and memory."""
        return replace(self, resources=weighted(self.resources or DEFAULT_RESOURCES))


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Constraints for pods that have none of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""

    def defaulted(self, gates: FeatureGates) -> PodTopologySpreadArgs:  # noqa: ARG002
        """The built-in constraints."""
        return replace(self, defaulting_type=self.defaulting_type or "System")


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long volumes may take to be bound, and how their capacity is scored."""

    bind_timeout_seconds: int = 600
    #: Not given is not the same as empty.
    shape: tuple[ShapePoint, ...] | None = None

    def defaulted(self, gates: FeatureGates) -> VolumeBindingArgs:
        """A shape only where capacity is scored at all."""
        if self.shape or not gates["StorageCapacityScoring"]:
            return self
        return replace(self, shape=(ShapePoint(0, 10), ShapePoint(100, 0)))


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """How long devices may take, in nanoseconds."""

    filter_timeout: int | None = None
    binding_timeout: int | None = None

    def defaulted(self, gates: FeatureGates) -> DynamicResourcesArgs:
        """Ten seconds and ten minutes, where the gates know such times."""
        found = self
        if self.filter_timeout is None and gates["DRASchedulerFilterTimeout"]:
            found = replace(found, filter_timeout=10 * SECOND)
        if self.binding_timeout is None and binding_conditions(gates):
            found = replace(found, binding_timeout=600 * SECOND)
        return found


def binding_conditions(gates: FeatureGates) -> bool:
    """Whether a binding timeout means anything."""
    return gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"]


def weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """A weight of 0 is 1."""
    return tuple(replace(each, weight=each.weight or 1) for each in resources)


# As Go knows them. `kind` and `apiVersion` may be written into arguments as well.
TYPE_META: Final = {
    "kind": Field("", STRING, "TypeMeta"),
    "apiVersion": Field("", STRING, "TypeMeta"),
}

_POINT = record("v1.UtilizationShapePoint", ShapePoint, utilization=INT32, score=INT32)
_RESOURCE = record("v1.ResourceSpec", ResourceSpec, name=STRING, weight=INT64)
_RATIO = record("v1.RequestedToCapacityRatioParam", RatioParam, shape=Slice(_POINT))
_STRATEGY = record(
    "v1.ScoringStrategy",
    ScoringStrategy,
    type=named("v1.ScoringStrategyType"),
    resources=Slice(_RESOURCE),
    requested_to_capacity_ratio=_RATIO,
)
_VALUES = Slice(STRING, list)
_NODE_REQUIREMENT = record(
    "v1.NodeSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.NodeSelectorOperator"),
    values=_VALUES,
)
_LABEL_REQUIREMENT = record(
    "v1.LabelSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.LabelSelectorOperator"),
    values=_VALUES,
)
_TERM = record(
    "v1.NodeSelectorTerm",
    NodeSelectorTerm,
    match_expressions=Slice(_NODE_REQUIREMENT, list),
    match_fields=Slice(_NODE_REQUIREMENT, list),
)
_SELECTOR = record("v1.NodeSelector", NodeSelector, node_selector_terms=Slice(_TERM, list))
_PREFERRED = record(
    "v1.PreferredSchedulingTerm", PreferredSchedulingTerm, weight=INT32, preference=_TERM
)
_AFFINITY = record(
    "v1.NodeAffinity",
    NodeAffinity,
    required=("requiredDuringSchedulingIgnoredDuringExecution", _SELECTOR),
    preferred=("preferredDuringSchedulingIgnoredDuringExecution", Slice(_PREFERRED, list)),
)
_LABEL_SELECTOR = record(
    "v1.LabelSelector",
    LabelSelector,
    match_labels=STRING_MAP,
    match_expressions=Slice(_LABEL_REQUIREMENT, list),
)
_CONSTRAINT = record(
    "v1.TopologySpreadConstraint",
    TopologySpreadConstraint,
    max_skew=INT32,
    topology_key=STRING,
    when_unsatisfiable=named("v1.UnsatisfiableConstraintAction"),
    label_selector=_LABEL_SELECTOR,
    min_domains=INT32,
    node_affinity_policy=named("v1.NodeInclusionPolicy"),
    node_taints_policy=named("v1.NodeInclusionPolicy"),
    match_label_keys=_VALUES,
)

_ARGUMENTS: Final = (
    record(
        "v1.DefaultPreemptionArgs",
        DefaultPreemptionArgs,
        min_candidate_nodes_percentage=INT32,
        min_candidate_nodes_absolute=INT32,
    ),
    record(
        "v1.DynamicResourcesArgs",
        DynamicResourcesArgs,
        filter_timeout=DURATION_POINTER,
        binding_timeout=DURATION_POINTER,
    ),
    record(
        "v1.InterPodAffinityArgs",
        InterPodAffinityArgs,
        hard_pod_affinity_weight=INT32,
        ignore_preferred_terms_of_existing_pods=BOOL,
    ),
    record("v1.NodeAffinityArgs", NodeAffinityArgs, added_affinity=_AFFINITY),
    record(
        "v1.NodeResourcesBalancedAllocationArgs",
        NodeResourcesBalancedAllocationArgs,
        resources=Slice(_RESOURCE),
    ),
    record(
        "v1.NodeResourcesFitArgs",
        NodeResourcesFitArgs,
        ignored_resources=STRINGS,
        ignored_resource_groups=STRINGS,
        scoring_strategy=_STRATEGY,
    ),
    record(
        "v1.PodTopologySpreadArgs",
        PodTopologySpreadArgs,
        default_constraints=Slice(_CONSTRAINT),
        defaulting_type=named("v1.PodTopologySpreadConstraintsDefaulting"),
    ),
    record(
        "v1.VolumeBindingArgs",
        VolumeBindingArgs,
        bind_timeout_seconds=INT64,
        shape=Slice(_POINT),
    ),
)

#: Kind -> how it is read. The type is named after the plugin.
ARGUMENTS: Final = {
    kind.name: Struct(kind.go, kind.make, {**TYPE_META, **kind.fields}) for kind in _ARGUMENTS
}
