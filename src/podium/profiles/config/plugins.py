"""Every plugin there is: where it takes part, how its rules are made, what it needs beforehand.

The one list that checking, showing and building read.
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

if TYPE_CHECKING:
    from podium.engine.cycle.post_filter import PostFilter
    from podium.engine.framework.profile import Gate
    from podium.engine.rules.plugins import FilterPlugin, ScorePlugin
    from podium.profiles.config import args


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin: `filter` and the others make its rules from its arguments, or from None."""

    name: str
    #: Where it can take part, separated by blanks.
    at: str
    description: str
    filter: Callable[[Any], FilterPlugin] | None = None
    score: Callable[[Any], ScorePlugin] | None = None
    gate: Callable[[], Gate] | None = None
    post_filter: Callable[[Any], PostFilter] | None = None
    #: The error of its filter when it is not at preFilter; empty if it can do without.
    unprepared: str = ""
    #: The error of its score when it is not at preScore; empty if it can do without.
    unscored: str = ""

    @property
    def points(self) -> frozenset[str]:
        """Where it can take part."""
        return frozenset(self.at.split())


def _plain(rule: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda _: rule()


def _affinity(rule: Callable[[Any], Any]) -> Callable[[args.NodeAffinityArgs], Any]:
    return lambda found: rule(found.added_affinity)


def _spread(rule: Callable[[SpreadDefaults], Any]) -> Callable[[args.PodTopologySpreadArgs], Any]:
    def made(found: args.PodTopologySpreadArgs) -> Any:
        system = found.defaulting_type == "System"
        listed = SYSTEM_DEFAULTS if system else found.default_constraints
        return rule(SpreadDefaults(found.defaulting_type, listed))

    return made


def _fit(found: args.NodeResourcesFitArgs) -> NodeResourcesFit:
    return NodeResourcesFit(
        frozenset(found.ignored_resources), frozenset(found.ignored_resource_groups)
    )


def _fit_score(found: args.NodeResourcesFitArgs) -> NodeResourcesFitScore:
    strategy = found.scoring_strategy
    assert strategy is not None  # the defaults bring one
    ratio = strategy.requested_to_capacity_ratio
    return NodeResourcesFitScore(
        strategy.type,
        tuple((resource.name, resource.weight) for resource in strategy.resources),
        tuple((point.utilization, point.score) for point in ratio.shape) if ratio else (),
    )


def _pod_affinity_score(found: args.InterPodAffinityArgs) -> InterPodAffinityScore:
    return InterPodAffinityScore(
        found.hard_pod_affinity_weight,
        ignore_preferred_of_existing=found.ignore_preferred_terms_of_existing_pods,
    )


def _balanced(
    found: args.NodeResourcesBalancedAllocationArgs,
) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(tuple(resource.name for resource in found.resources))


def _preemption(found: args.DefaultPreemptionArgs) -> DefaultPreemption:
    return DefaultPreemption(
        found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    )


_LIST: Final = (
    Plugin("SchedulingGates", "preEnqueue", "a pod with gates is not tried", gate=SchedulingGates),
    Plugin("PrioritySort", "queueSort", "pods of higher priority go first"),
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
        unscored='failed to read "PreScoreTaintToleration" from cycleState: not found',
    ),
    Plugin(
        "NodeAffinity",
        "preFilter filter preScore score",
        "node selectors and node affinity",
        filter=_affinity(NodeAffinity),
        score=_affinity(NodeAffinityScore),
    ),
    Plugin(
        "NodePorts",
        "preFilter filter",
        "free host ports",
        filter=_plain(NodePorts),
        unprepared='reading "PreFilterNodePorts" from cycleState: not found',
    ),
    Plugin(
        "NodeResourcesFit",
        "preFilter filter preScore score placementScore",
        "room for what the pod requests",
        filter=_fit,
        score=_fit_score,
        unprepared='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    ),
    Plugin(
        "VolumeRestrictions",
        "preFilter filter",
        "disks and claims that exclude each other",
        filter=_plain(VolumeRestrictions),
        unprepared='cannot read "PreFilterVolumeRestrictions" from cycleState',
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
        unprepared="not found",
    ),
    Plugin(
        "VolumeZone",
        "preFilter filter",
        "volumes are in the zone of the node",
        filter=_plain(VolumeZone),
    ),
    Plugin(
        "PodTopologySpread",
        "preFilter filter preScore score",
        "pods spread over zones and nodes",
        filter=_spread(PodTopologySpread),
        score=_spread(PodTopologySpreadScore),
        unprepared='reading "PreFilterPodTopologySpread" from cycleState: not found',
        unscored='error reading "PreScorePodTopologySpread" from cycleState: not found',
    ),
    Plugin(
        "InterPodAffinity",
        "preFilter filter preScore score",
        "pods near to or far from other pods",
        filter=_plain(InterPodAffinity),
        score=_pod_affinity_score,
        unprepared='error reading "PreFilterInterPodAffinity" from cycleState: not found',
        unscored='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    ),
    Plugin(
        "DynamicResources",
        "preEnqueue preFilter filter postFilter score reserve preBind",
        "devices that the pod claims",
        filter=_plain(DynamicResources),
        score=_plain(DynamicResourcesScore),
        post_filter=_plain(DynamicResourcesPostFilter),
        unprepared="not found",
    ),
    Plugin(
        "DefaultPreemption",
        "preEnqueue postFilter",
        "evict pods of lower priority",
        post_filter=_preemption,
    ),
    Plugin(
        "NodeResourcesBalancedAllocation",
        "preScore score",
        "resources used up evenly",
        score=_balanced,
    ),
    Plugin(
        "ImageLocality", "score", "images that the node has already", score=_plain(ImageLocality)
    ),
    Plugin("DefaultBinder", "bind", "bind the pod to the node"),
    Plugin(
        "NodeDeclaredFeatures",
        "preFilter filter",
        "features that the node declares",
        filter=_plain(NodeDeclaredFeatures),
        unprepared='error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
    ),
    Plugin("GangScheduling", "preEnqueue permit", "pods of a group start together"),
    Plugin("TopologyPlacementGenerator", "placementGenerate", "places for a pod group"),
    Plugin("PodGroupPodsCount", "placementScore", "how much of a pod group fits"),
)
#: Name -> plugin, in the order in which the defaults run them.
PLUGINS: Final = {plugin.name: plugin for plugin in _LIST}
