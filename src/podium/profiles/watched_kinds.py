"""Which kinds of objects are watched for the rules of a profile.

Nodes and pods always, and the kinds that the rules look up. A rule that is not in the table, such
as a user's own rule, may look up every kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.profile import Profile

_ALWAYS: Final = frozenset({"Node", "Pod"})
_SELECTING: Final = frozenset({"Service", "ReplicationController", "ReplicaSet", "StatefulSet"})
_CLAIMS: Final = frozenset({"PersistentVolume", "PersistentVolumeClaim"})
_STORAGE: Final = _CLAIMS | {"StorageClass"}
_CSI: Final = frozenset({"CSINode", "CSIDriver", "CSIStorageCapacity"})
_NOTHING: Final = frozenset[str]()

#: Class of a rule -> kinds that it looks up.
_READS: Final = {
    # v1.13: predicates
    "CheckNodeCondition": _NOTHING,
    "CheckNodeUnschedulable": _NOTHING,
    "GeneralPredicates": _NOTHING,
    "HostName": _NOTHING,
    "PodFitsHostPorts": _NOTHING,
    "MatchNodeSelector": _NOTHING,
    "PodFitsResources": _NOTHING,
    "NoDiskConflict": _NOTHING,
    "PodToleratesNodeTaints": _NOTHING,
    "PodToleratesNodeNoExecuteTaints": _NOTHING,
    "CheckNodeLabelPresence": _NOTHING,
    "CheckServiceAffinity": frozenset({"Service"}),
    "MaxVolumeCount": _CLAIMS,
    "MaxCSIVolumeCount": _CLAIMS,
    "CheckVolumeBinding": _STORAGE,
    "NoVolumeZoneConflict": _STORAGE,
    "CheckNodeMemoryPressure": _NOTHING,
    "CheckNodePIDPressure": _NOTHING,
    "CheckNodeDiskPressure": _NOTHING,
    "MatchInterPodAffinity": _NOTHING,
    # v1.13: priorities
    "BalancedResourceAllocation": _NOTHING,
    "EqualPriority": _NOTHING,
    "ImageLocalityPriority": _NOTHING,
    "InterPodAffinityPriority": _NOTHING,
    "LeastRequestedPriority": _NOTHING,
    "MostRequestedPriority": _NOTHING,
    "NodeAffinityPriority": _NOTHING,
    "NodeLabelPriority": _NOTHING,
    "NodePreferAvoidPodsPriority": _NOTHING,
    "RequestedToCapacityRatioPriority": _NOTHING,
    "ResourceLimitsPriority": _NOTHING,
    "SelectorSpreadPriority": _SELECTING,
    "ServiceAntiAffinity": frozenset({"Service"}),
    "ServiceSpreadingPriority": frozenset({"Service"}),
    "TaintTolerationPriority": _NOTHING,
    "PodPriorityPreemption": frozenset({"PodDisruptionBudget"}),
    # v1.36
    "NodeUnschedulable": _NOTHING,
    "NodeName": _NOTHING,
    "TaintToleration": _NOTHING,
    "TaintTolerationScore": _NOTHING,
    "NodeAffinity": _NOTHING,
    "NodeAffinityScore": _NOTHING,
    "NodePorts": _NOTHING,
    "NodeResourcesFit": _NOTHING,
    "NodeResourcesFitScore": _NOTHING,
    "NodeResourcesBalancedAllocation": _NOTHING,
    "VolumeRestrictions": frozenset({"PersistentVolumeClaim"}),
    "NodeVolumeLimits": _STORAGE | {"CSINode", "VolumeAttachment"},
    "VolumeBinding": _STORAGE | _CSI,
    "VolumeBindingScore": _STORAGE | _CSI,
    "VolumeZone": _STORAGE,
    "PodTopologySpread": _SELECTING,
    "PodTopologySpreadScore": _SELECTING,
    "InterPodAffinity": frozenset({"Namespace"}),
    "InterPodAffinityScore": frozenset({"Namespace"}),
    "DynamicResources": _NOTHING,
    "DynamicResourcesPostFilter": _NOTHING,
    "DynamicResourcesScore": _NOTHING,
    "DefaultPreemption": frozenset({"PodDisruptionBudget"}),
    "ImageLocality": _NOTHING,
    "NodeDeclaredFeatures": _NOTHING,
    # Plugins that a profile enables without their preFilter or preScore point
    "FailingFilter": _NOTHING,
    "DiskConflictsOnly": _NOTHING,
    "FailingScore": _NOTHING,
}


def _all_kinds() -> frozenset[str]:
    """Every kind that a rule may look up."""
    return frozenset(kind.name for kind in KINDS.values() if kind.looked_up)


def watched_kinds(profiles: Iterable[Profile]) -> frozenset[str]:
    """Every kind that a rule of these profiles looks up, and nodes and pods."""
    found = set(_ALWAYS)
    for profile in profiles:
        rules: list[object] = [*profile.predicates, *profile.pre_filters, *profile.post_filters]
        rules += [weighted.priority for weighted in profile.priorities]
        for rule in rules:
            found |= _read_by(rule)
        if profile.checks:
            found.add("PersistentVolumeClaim")
    return frozenset(found)


def _read_by(rule: object) -> frozenset[str]:
    """The kinds that a rule looks up; a class derived from a known one looks up the same."""
    wrapped = getattr(rule, "rule", None)
    classes = type(rule if wrapped is None else wrapped).__mro__
    known = (_READS[each.__name__] for each in classes if each.__name__ in _READS)
    return next(known, _all_kinds())
