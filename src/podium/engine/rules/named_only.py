"""Plugins without a rule: the queue sorts pods and the scheduler binds them.

Plugins for groups of pods can be named; such groups are not supported.
"""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration

PRIORITY_SORT: Final = PluginDeclaration(
    "PrioritySort",
    "queueSort",
    "pods of higher priority go first",
)

DEFAULT_BINDER: Final = PluginDeclaration(
    "DefaultBinder",
    "bind",
    "bind the pod to the node",
)

GANG_SCHEDULING: Final = PluginDeclaration(
    "GangScheduling",
    "preEnqueue permit",
    "pods of a group start together",
    feature_gate="GangScheduling",
)

#: It looks at pods that run and wait for more room on their node; the gate is off by default.
DEFERRED_POD_SCHEDULING: Final = PluginDeclaration(
    "DeferredPodScheduling",
    "preFilter filter permit",
    "room for pods whose resize is deferred",
    feature_gate="InPlacePodVerticalScalingSchedulerPreemption",
)

TOPOLOGY_PLACEMENT_GENERATOR: Final = PluginDeclaration(
    "TopologyPlacementGenerator",
    "placementGenerate",
    "places for a pod group",
    feature_gate="TopologyAwareWorkloadScheduling",
)

POD_GROUP_PODS_COUNT: Final = PluginDeclaration(
    "PodGroupPodsCount",
    "placementScore",
    "how much of a pod group fits",
    weight=1,
    feature_gate="TopologyAwareWorkloadScheduling",
)
