"""Every plugin of v1.36, declared once, in the order in which the default profile runs them.

Default plugins and weights, extension points, the arguments with their checks and the rules of a
profile are derived from this list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from podium.engine.preemption.v1_36 import DefaultPreemption
from podium.engine.rules.devices.v1_36 import (
    DynamicResources,
    DynamicResourcesPostFilter,
    DynamicResourcesScore,
)
from podium.engine.rules.gates.v1_36 import SchedulingGates
from podium.engine.rules.images.v1_36 import ImageLocality
from podium.engine.rules.node_affinity.v1_36 import NodeAffinity, NodeAffinityScore
from podium.engine.rules.nodes.v1_36 import NodeDeclaredFeatures, NodeName, NodeUnschedulable
from podium.engine.rules.pod_affinity.v1_36 import InterPodAffinity, InterPodAffinityScore
from podium.engine.rules.ports.v1_36 import NodePorts
from podium.engine.rules.resources.v1_36 import (
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    NodeResourcesFitScore,
)
from podium.engine.rules.spreading.v1_36 import PodTopologySpread, PodTopologySpreadScore
from podium.engine.rules.spreading.v1_36_constraints import SYSTEM_DEFAULTS, SpreadDefaults
from podium.engine.rules.taints.v1_36 import TaintToleration, TaintTolerationScore
from podium.engine.rules.volumes.binding.v1_36 import VolumeBinding, VolumeBindingScore
from podium.engine.rules.volumes.conflicts.v1_36 import VolumeRestrictions
from podium.engine.rules.volumes.limits.v1_36 import NodeVolumeLimits
from podium.engine.rules.volumes.zones.v1_36 import VolumeZone
from podium.profiles.config.arguments.devices import DYNAMIC_RESOURCES
from podium.profiles.config.arguments.node_affinity import NODE_AFFINITY, NodeAffinityArgs
from podium.profiles.config.arguments.pod_affinity import INTER_POD_AFFINITY, InterPodAffinityArgs
from podium.profiles.config.arguments.preemption import DEFAULT_PREEMPTION, DefaultPreemptionArgs
from podium.profiles.config.arguments.resources import (
    NODE_RESOURCES_BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from podium.profiles.config.arguments.spreading import POD_TOPOLOGY_SPREAD, PodTopologySpreadArgs
from podium.profiles.config.arguments.volumes import VOLUME_BINDING
from podium.profiles.config.missing_points import DiskConflictsOnly, PreFilterPerNode

if TYPE_CHECKING:
    from podium.engine.framework.post_filter import PostFilter
    from podium.engine.framework.profile import Gate
    from podium.engine.framework.rule import FilterRule, ScoreRule
    from podium.profiles.config.arguments.shared import Arguments


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin: `filter` and the others make its rules from its arguments, or from None."""

    name: str
    #: The extension points that it implements, separated by blanks.
    at: str
    description: str
    filter: Callable[[Any], FilterRule] | None = None
    score: Callable[[Any], ScoreRule] | None = None
    gate: Callable[[], Gate] | None = None
    post_filter: Callable[[Any], PostFilter] | None = None
    arguments: Arguments[Any] | None = None
    #: Its weight among the default plugins.
    weight: int = 0
    #: The feature gate without which it is not among the default plugins.
    feature_gate: str = ""
    #: The error of its filter in a profile without it at preFilter; empty if it needs none.
    pre_filter_error: str = ""
    #: The filter in such a profile, made from its own, unless it always fails or is the same.
    without_pre_filter: Callable[[FilterRule], FilterRule] | None = None
    #: Whether its score fails as well without preFilter.
    score_needs_pre_filter: bool = False
    #: The error of its score in a profile without it at preScore; empty if it needs none.
    pre_score_error: str = ""

    @property
    def points(self) -> frozenset[str]:
        """The extension points that it implements."""
        return frozenset(self.at.split())


def _plain(rule: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda _: rule()


def _affinity(rule: Callable[[Any], Any]) -> Callable[[NodeAffinityArgs], Any]:
    return lambda found: rule(found.added_affinity)


def _spread(rule: Callable[[SpreadDefaults], Any]) -> Callable[[PodTopologySpreadArgs], Any]:
    def made(found: PodTopologySpreadArgs) -> Any:
        system = found.defaulting_type == "System"
        listed = SYSTEM_DEFAULTS if system else found.default_constraints
        return rule(SpreadDefaults(found.defaulting_type, listed))

    return made


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


def _pod_affinity_score(found: InterPodAffinityArgs) -> InterPodAffinityScore:
    return InterPodAffinityScore(
        found.hard_pod_affinity_weight,
        ignore_preferred_of_existing=found.ignore_preferred_terms_of_existing_pods,
    )


def _balanced(
    found: NodeResourcesBalancedAllocationArgs,
) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(tuple(resource.name for resource in found.resources))


def _preemption(found: DefaultPreemptionArgs) -> DefaultPreemption:
    return DefaultPreemption(
        found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    )


_NO_RESTRICTIONS: Final = 'cannot read "PreFilterVolumeRestrictions" from cycleState'
_LIST: Final = (
    Plugin(
        "SchedulingGates",
        "preEnqueue",
        "a pod with gates is not tried",
        gate=SchedulingGates,
    ),
    Plugin(
        "PrioritySort",
        "queueSort",
        "pods of higher priority go first",
    ),
    Plugin(
        "NodeUnschedulable",
        "filter",
        "the node is not cordoned, or the pod tolerates that",
        filter=_plain(NodeUnschedulable),
    ),
    Plugin(
        "NodeName",
        "filter",
        "the node is the one that the pod names, if it names one",
        filter=_plain(NodeName),
    ),
    Plugin(
        "TaintToleration",
        "filter preScore score",
        "taints that the pod tolerates",
        filter=_plain(TaintToleration),
        score=_plain(TaintTolerationScore),
        weight=3,
        pre_score_error='failed to read "PreScoreTaintToleration" from cycleState: not found',
    ),
    Plugin(
        "NodeAffinity",
        "preFilter filter preScore score",
        "node selectors and node affinity",
        filter=_affinity(NodeAffinity),
        score=_affinity(NodeAffinityScore),
        arguments=NODE_AFFINITY,
        weight=2,
    ),
    Plugin(
        "NodePorts",
        "preFilter filter",
        "free host ports",
        filter=_plain(NodePorts),
        pre_filter_error='reading "PreFilterNodePorts" from cycleState: not found',
    ),
    Plugin(
        "NodeResourcesFit",
        "preFilter filter preScore score placementScore",
        "room for what the pod requests",
        filter=_fit,
        score=_fit_score,
        arguments=NODE_RESOURCES_FIT,
        weight=1,
        pre_filter_error='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    ),
    Plugin(
        "VolumeRestrictions",
        "preFilter filter",
        "disks and claims that exclude each other",
        filter=_plain(VolumeRestrictions),
        pre_filter_error=_NO_RESTRICTIONS,
        without_pre_filter=lambda rule: DiskConflictsOnly(rule.name, _NO_RESTRICTIONS),
    ),
    Plugin(
        "NodeVolumeLimits",
        "preFilter filter",
        "how many volumes a node can attach",
        filter=_plain(NodeVolumeLimits),
    ),
    Plugin(
        "VolumeBinding",
        "preFilter filter reserve preBind preScore score",
        "claims have volumes that the node can reach, or can get some",
        filter=_plain(VolumeBinding),
        score=_plain(VolumeBindingScore),
        arguments=VOLUME_BINDING,
        pre_filter_error="not found",
    ),
    Plugin(
        "VolumeZone",
        "preFilter filter",
        "volumes are in the zone of the node",
        filter=_plain(VolumeZone),
        without_pre_filter=PreFilterPerNode,
    ),
    Plugin(
        "PodTopologySpread",
        "preFilter filter preScore score",
        "pods spread over zones and nodes",
        filter=_spread(PodTopologySpread),
        score=_spread(PodTopologySpreadScore),
        arguments=POD_TOPOLOGY_SPREAD,
        weight=2,
        pre_filter_error='reading "PreFilterPodTopologySpread" from cycleState: not found',
        pre_score_error='error reading "PreScorePodTopologySpread" from cycleState: not found',
    ),
    Plugin(
        "InterPodAffinity",
        "preFilter filter preScore score",
        "pods near to or far from other pods",
        filter=_plain(InterPodAffinity),
        score=_pod_affinity_score,
        arguments=INTER_POD_AFFINITY,
        weight=2,
        pre_filter_error='error reading "PreFilterInterPodAffinity" from cycleState: not found',
        pre_score_error='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    ),
    # Freeing an idle device is tried before DefaultPreemption evicts pods.
    Plugin(
        "DynamicResources",
        "preEnqueue preFilter filter postFilter score reserve preBind",
        "devices that the pod claims",
        filter=_plain(DynamicResources),
        score=_plain(DynamicResourcesScore),
        post_filter=_plain(DynamicResourcesPostFilter),
        arguments=DYNAMIC_RESOURCES,
        weight=2,
        feature_gate="DynamicResourceAllocation",
        pre_filter_error="not found",
        score_needs_pre_filter=True,
    ),
    Plugin(
        "DefaultPreemption",
        "preEnqueue postFilter",
        "evict pods of lower priority",
        post_filter=_preemption,
        arguments=DEFAULT_PREEMPTION,
    ),
    Plugin(
        "NodeResourcesBalancedAllocation",
        "preScore score",
        "resources used up evenly",
        score=_balanced,
        arguments=NODE_RESOURCES_BALANCED_ALLOCATION,
        weight=1,
    ),
    Plugin(
        "ImageLocality",
        "score",
        "images that the node has already",
        score=_plain(ImageLocality),
        weight=1,
    ),
    Plugin(
        "DefaultBinder",
        "bind",
        "bind the pod to the node",
    ),
    Plugin(
        "NodeDeclaredFeatures",
        "preFilter filter",
        "features that the node declares",
        filter=_plain(NodeDeclaredFeatures),
        feature_gate="NodeDeclaredFeatures",
        pre_filter_error=(
            'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
        ),
    ),
    Plugin(
        "GangScheduling",
        "preEnqueue permit",
        "pods of a group start together",
        feature_gate="GangScheduling",
    ),
    Plugin(
        "TopologyPlacementGenerator",
        "placementGenerate",
        "places for a pod group",
        feature_gate="TopologyAwareWorkloadScheduling",
    ),
    Plugin(
        "PodGroupPodsCount",
        "placementScore",
        "how much of a pod group fits",
        weight=1,
        feature_gate="TopologyAwareWorkloadScheduling",
    ),
)
#: Name -> plugin, in the order of the default plugins.
PLUGINS: Final = {plugin.name: plugin for plugin in _LIST}
