"""Every priority that a Policy can name, and the algorithm providers that use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.engine.rules.images.v1_13 import ImageLocalityPriority
from podium.engine.rules.node_affinity.v1_13 import NodeAffinityPriority
from podium.engine.rules.nodes.v1_13 import EqualPriority, NodePreferAvoidPodsPriority
from podium.engine.rules.pod_affinity.v1_13 import InterPodAffinityPriority
from podium.engine.rules.resources.v1_13 import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.engine.rules.spreading.v1_13 import SelectorSpreadPriority, ServiceSpreadingPriority
from podium.engine.rules.taints.v1_13 import TaintTolerationPriority

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.rule import ScoreRule
    from podium.profiles.policy.factory_args import FactoryArgs
    from podium.profiles.policy.feature_gates import FeatureGates

    Maker = Callable[[FactoryArgs], ScoreRule]

DEFAULT = "DefaultProvider"
AUTOSCALER = "ClusterAutoscalerProvider"
PROVIDERS = {
    DEFAULT: "spreads pods over nodes with room",
    AUTOSCALER: "fills nodes up, so that a cluster autoscaler can remove empty ones",
}
BOTH = (DEFAULT, AUTOSCALER)


@dataclass(frozen=True, slots=True)
class PriorityEntry:
    """A priority."""

    name: str
    description: str
    make: Maker
    #: The weight that the providers give it.
    weight: int = 1
    providers: tuple[str, ...] = ()
    #: The feature gate with which the name exists; empty: always.
    exists: str = ""


def _plain(rule: Callable[[], ScoreRule]) -> Maker:
    return lambda _: rule()


PRIORITIES = (
    PriorityEntry(
        "BalancedResourceAllocation",
        "cpu and memory would be used to a similar share",
        _plain(BalancedResourceAllocation), providers=BOTH,
    ),
    PriorityEntry("EqualPriority", "the same for every node", _plain(EqualPriority)),
    PriorityEntry(
        "ImageLocalityPriority",
        "the node holds the pod's images",
        _plain(ImageLocalityPriority), providers=BOTH,
    ),
    PriorityEntry(
        "InterPodAffinityPriority",
        "preferred affinity and anti-affinity between pods, in both directions",
        lambda args: InterPodAffinityPriority(args.hard_pod_affinity_weight), providers=BOTH,
    ),
    PriorityEntry(
        "LeastRequestedPriority",
        "most cpu and memory left",
        _plain(LeastRequestedPriority), providers=(DEFAULT,),
    ),
    PriorityEntry(
        "MostRequestedPriority",
        "most cpu and memory used",
        _plain(MostRequestedPriority), providers=(AUTOSCALER,),
    ),
    PriorityEntry(
        "NodeAffinityPriority",
        "the pod's preferred node affinity",
        _plain(NodeAffinityPriority), providers=BOTH,
    ),
    PriorityEntry(
        "NodePreferAvoidPodsPriority",
        "the node does not ask to be spared the pod's controller",
        _plain(NodePreferAvoidPodsPriority), weight=10000, providers=BOTH,
    ),
    PriorityEntry(
        "RequestedToCapacityRatioPriority",
        "utilization scored by a line; without an argument, the emptier the better",
        _plain(RequestedToCapacityRatioPriority),
    ),
    PriorityEntry(
        "ResourceLimitsPriority",
        "the node can hold the pod's cpu or memory limit",
        _plain(ResourceLimitsPriority), providers=BOTH, exists="ResourceLimitsPriorityFunction",
    ),
    PriorityEntry(
        "SelectorSpreadPriority",
        "few pods of the same service or controller on the node and in its zone",
        _plain(SelectorSpreadPriority), providers=BOTH,
    ),
    PriorityEntry(
        "ServiceSpreadingPriority",
        "an old name of SelectorSpreadPriority",
        _plain(ServiceSpreadingPriority),
    ),
    PriorityEntry(
        "TaintTolerationPriority",
        "few PreferNoSchedule taints that the pod does not tolerate",
        _plain(TaintTolerationPriority), providers=BOTH,
    ),
)  # fmt: skip


def registered(gates: FeatureGates) -> dict[str, PriorityEntry]:
    """The priorities that can be used without an argument, by name."""
    return {entry.name: entry for entry in PRIORITIES if gates.hold(entry.exists)}


def provided(provider: str, gates: FeatureGates) -> dict[str, PriorityEntry]:
    """The priorities of a provider, by name."""
    return {name: e for name, e in registered(gates).items() if provider in e.providers}
