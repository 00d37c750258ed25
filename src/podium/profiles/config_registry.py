"""Every plugin there is: where it takes part, and what it does there.

The one list that checking, showing and building read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin by name."""

    name: str
    description: str
    #: Where it can take part.
    points: frozenset[str]


def _plugin(name: str, points: str, description: str) -> Plugin:
    return Plugin(name, description, frozenset(points.split()))


_FILTERS = "preFilter filter"
_FILTERS_AND_SCORES = "preFilter filter preScore score"

PLUGINS: Final = {
    plugin.name: plugin
    for plugin in (
        _plugin("SchedulingGates", "preEnqueue", "a pod with gates is not tried"),
        _plugin("PrioritySort", "queueSort", "pods of higher priority go first"),
        _plugin(
            "NodeUnschedulable", "filter", "the node is not cordoned, or the pod tolerates that"
        ),
        _plugin("NodeName", "filter", "the node is the one that the pod names, if it names one"),
        _plugin("TaintToleration", "filter preScore score", "taints that the pod tolerates"),
        _plugin("NodeAffinity", _FILTERS_AND_SCORES, "node selectors and node affinity"),
        _plugin("NodePorts", _FILTERS, "free host ports"),
        _plugin(
            "NodeResourcesFit",
            f"{_FILTERS_AND_SCORES} placementScore",
            "room for what the pod requests",
        ),
        _plugin("VolumeRestrictions", _FILTERS, "disks and claims that exclude each other"),
        _plugin("NodeVolumeLimits", _FILTERS, "how many volumes a node can attach"),
        _plugin(
            "VolumeBinding",
            f"{_FILTERS_AND_SCORES} reserve preBind",
            "claims have volumes that the node can reach, or can get some",
        ),
        _plugin("VolumeZone", _FILTERS, "volumes are in the zone of the node"),
        _plugin("PodTopologySpread", _FILTERS_AND_SCORES, "pods spread over zones and nodes"),
        _plugin("InterPodAffinity", _FILTERS_AND_SCORES, "pods near to or far from other pods"),
        _plugin(
            "DynamicResources",
            "preEnqueue preFilter filter postFilter score reserve preBind",
            "devices that the pod claims",
        ),
        _plugin("DefaultPreemption", "preEnqueue postFilter", "evict pods of lower priority"),
        _plugin("NodeResourcesBalancedAllocation", "preScore score", "resources used up evenly"),
        _plugin("ImageLocality", "score", "images that the node has already"),
        _plugin("DefaultBinder", "bind", "bind the pod to the node"),
        _plugin("NodeDeclaredFeatures", _FILTERS, "features that the node declares"),
        _plugin("GangScheduling", "preEnqueue permit", "pods of a group start together"),
        _plugin("TopologyPlacementGenerator", "placementGenerate", "places for a pod group"),
        _plugin("PodGroupPodsCount", "placementScore", "how much of a pod group fits"),
    )
}
