"""Which plugin is woken by which event: the table of v1.36.

Upstream: the EventsToRegister method of each plugin, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from podium.cluster.wakeups import node_hints as nodes
from podium.cluster.wakeups import pod_hints as pods
from podium.cluster.wakeups import volume_hints as volumes
from podium.objects.kinds.pod import NodeSelector, Pod

#: Says of (waiting pod, object before, object after) whether the pod is worth another try.
Hint = Callable[[Pod, Any, Any], bool]
#: What one plugin registers: "<resource> <action>" to the hint.
Registration = Mapping[str, Hint]


def always(_waiting: Pod, _old: object, _new: object) -> bool:
    """Every such event may help."""
    return True


def _never(_waiting: Pod, _old: object, _new: object) -> bool:
    return False


_TABLE: Final[Mapping[str, Registration]] = {
    "NodeUnschedulable": {
        "Node Add": nodes.became_schedulable,
        "Node UpdateNodeTaint": nodes.became_schedulable,
        "Pod UpdatePodToleration": nodes.tolerates_unschedulable,
    },
    "NodeName": {"Node Add": always},
    "TaintToleration": {
        "Node Add": nodes.taints_tolerated,
        "Node UpdateNodeTaint": nodes.taints_tolerated,
        "Pod UpdatePodToleration": pods.is_self,
    },
    "NodePorts": {"Node Add": always, "Pod Delete": nodes.frees_ports},
    "VolumeRestrictions": {
        "Node Add": always,
        "Pod Delete": volumes.frees_disks,
        "PersistentVolumeClaim Add": volumes.claim_named,
    },
    "NodeVolumeLimits": {
        "CSINode Add": always,
        "CSINode Update": volumes.limit_grew,
        "Pod Delete": volumes.frees_attachments,
        "PersistentVolumeClaim Add": volumes.claim_used,
        "VolumeAttachment Delete": volumes.detached,
    },
    "VolumeBinding": {
        "StorageClass Add": always,
        "StorageClass Update": volumes.topologies_changed,
        "PersistentVolumeClaim Add": volumes.claim_used,
        "PersistentVolumeClaim Update": volumes.claim_used,
        "PersistentVolume Add": always,
        "PersistentVolume Update": always,
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "CSINode Add": always,
        "CSINode Update": volumes.migration_changed,
        "CSIDriver Update": volumes.capacity_unchecked,
        "CSIStorageCapacity Add": always,
        "CSIStorageCapacity Update": volumes.capacity_grew,
    },
    "VolumeZone": {
        "StorageClass Add": volumes.waits_for_consumer,
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "PersistentVolumeClaim Add": volumes.claim_named,
        "PersistentVolumeClaim Update": volumes.claim_named,
        "PersistentVolume Add": always,
        "PersistentVolume Update": volumes.volume_moved,
    },
    "PodTopologySpread": {
        "Pod Add": pods.spread_pod_changed,
        "Pod Delete": pods.spread_pod_changed,
        "Pod UpdatePodLabel": pods.spread_pod_changed,
        "Pod UpdatePodToleration": pods.spread_pod_changed,
        "Node Add": pods.spread_node_changed,
        "Node Delete": pods.spread_node_changed,
        "Node UpdateNodeLabel": pods.spread_node_changed,
        "Node UpdateNodeTaint": pods.spread_node_changed,
    },
    "InterPodAffinity": {
        "Pod Add": pods.affine_pod_changed,
        "Pod Delete": pods.affine_pod_changed,
        "Pod UpdatePodLabel": pods.affine_pod_changed,
        "Node Add": pods.affine_node_changed,
        "Node UpdateNodeLabel": pods.affine_node_changed,
    },
    # Device objects are not read: whatever happens to them may help.
    "DynamicResources": {
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "Node UpdateNodeAllocatable": always,
        "ResourceClaim Add": always,
        "ResourceClaim Update": always,
        "DeviceClass Add": always,
        "DeviceClass Update": always,
        "ResourceSlice Add": always,
        "ResourceSlice Update": always,
    },
    "NodeDeclaredFeatures": {
        "Node Add": nodes.features_changed,
        "Node UpdateNodeDeclaredFeature": nodes.features_changed,
        "Pod Update": nodes.required_features_changed,
    },
    "SchedulingGates": {"Pod UpdatePodSchedulingGatesEliminated": pods.is_self},
    "DefaultPreemption": {"Pod Delete": _never},
}


def registrations(
    requests: nodes.Requests, added_affinity: NodeSelector | None = None
) -> dict[str, Registration]:
    """Give the table for a profile: how it counts requests, and the node affinity it adds."""
    room = nodes.ResourceHints(requests)
    affinity = nodes.NodeAffinityHint(added_affinity)
    return {
        **_TABLE,
        "NodeAffinity": {"Node Add": affinity, "Node UpdateNodeLabel": affinity},
        "NodeResourcesFit": {
            "Pod Delete": room.pod_gone,
            "Pod UpdatePodScaleDown": room.scaled_down,
            "Node Add": room.node_grew,
            "Node UpdateNodeAllocatable": room.node_grew,
            "DeviceClass Add": room.device_class,
            "DeviceClass Update": room.device_class,
        },
    }
