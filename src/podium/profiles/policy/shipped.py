"""Policies that come with Podium: what widely read texts about kube-scheduler describe.

They are named like files (`--policy kubernetes-1.8`); a file of that name takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec


class ShippedPolicy(msgspec.Struct, frozen=True):
    """A Policy, and the feature gates that it is meant for."""

    name: str
    description: str
    predicates: tuple[Mapping[str, Any], ...]
    priorities: tuple[Mapping[str, Any], ...]
    feature_gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """The Policy as it would stand in a file."""
        found: dict[str, Any] = {
            "kind": "Policy",
            "apiVersion": "v1",
            "predicates": [dict(each) for each in self.predicates],
            "priorities": [dict(each) for each in self.priorities],
        }
        if self.hard_pod_affinity_symmetric_weight:
            found["hardPodAffinitySymmetricWeight"] = self.hard_pod_affinity_symmetric_weight
        if self.always_check_all_predicates:
            found["alwaysCheckAllPredicates"] = True
        return found


def _named(*names: str) -> tuple[Mapping[str, Any], ...]:
    return tuple({"name": name} for name in names)


def _weighted(**weights: int) -> tuple[Mapping[str, Any], ...]:
    return tuple({"name": name, "weight": weight} for name, weight in weights.items())


_DEFAULT_PRIORITIES: Final = _weighted(
    SelectorSpreadPriority=1,
    InterPodAffinityPriority=1,
    LeastRequestedPriority=1,
    BalancedResourceAllocation=1,
    NodePreferAvoidPodsPriority=10000,
    NodeAffinityPriority=1,
    TaintTolerationPriority=1,
)
#: Before the conditions of nodes became taints.
_BY_CONDITIONS: Final = {"TaintNodesByCondition": False}

SHIPPED: Final = {
    each.name: each
    for each in (
        ShippedPolicy(
            "kubernetes-1.8",
            "the DefaultProvider of Kubernetes 1.8: 11 predicates and 7 priorities",
            _named(
                "NoVolumeZoneConflict",
                "MaxEBSVolumeCount",
                "MaxGCEPDVolumeCount",
                "MaxAzureDiskVolumeCount",
                "MatchInterPodAffinity",
                "NoDiskConflict",
                "GeneralPredicates",
                "PodToleratesNodeTaints",
                "CheckNodeMemoryPressure",
                "CheckNodeDiskPressure",
                "NoVolumeNodeConflict",
            ),
            _DEFAULT_PRIORITIES,
            _BY_CONDITIONS,
            # 1.8 asks every predicate about every node; 1.10 was the first to stop early.
            always_check_all_predicates=True,
        ),
        ShippedPolicy(
            "predicates-ordering",
            "the 16 predicates of the design proposal on their order, by the names it gives them",
            (
                *_named(
                    "CheckNodeConditionPredicate",
                    "PodFitsHost",
                    "PodFitsHostPorts",
                    "PodMatchNodeSelector",
                    "PodFitsResources",
                    "NoDiskConflict",
                    "PodToleratesNodeTaints",
                    "PodToleratesNodeNoExecuteTaints",
                ),
                {"name": "CheckNodeLabelPresence", "argument": {"labelsPresence": {"labels": []}}},
                {"name": "checkServiceAffinity", "argument": {"serviceAffinity": {"labels": []}}},
                *_named(
                    "MaxPDVolumeCountPredicate",
                    "VolumeNodePredicate",
                    "VolumeZonePredicate",
                    "CheckNodeMemoryPressurePredicate",
                    "CheckNodeDiskPressurePredicate",
                    "InterPodAffinityMatches",
                ),
            ),
            _DEFAULT_PRIORITIES,
            _BY_CONDITIONS,
        ),
        ShippedPolicy(
            "order-example",
            "six predicates with an `order` of their own, and four priorities",
            (
                {"name": "PodFitsHostPorts", "order": 2},
                {"name": "PodFitsResources", "order": 3},
                {"name": "NoDiskConflict", "order": 5},
                {"name": "PodToleratesNodeTaints", "order": 4},
                {"name": "MatchNodeSelector", "order": 6},
                {"name": "PodFitsHost", "order": 1},
            ),
            _weighted(
                LeastRequestedPriority=1,
                BalancedResourceAllocation=1,
                ServiceSpreadingPriority=1,
                EqualPriority=1,
            ),
            hard_pod_affinity_symmetric_weight=10,
        ),
    )
}
