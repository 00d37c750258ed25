"""v1.13: predicates, priorities and the feature gates that decide how they work."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.choices import Conduct, ExtenderProtocol, FeatureGate
from podium.engine.framework.generation import Generation
from podium.generations.predicates import (
    PREDICATE_ARGUMENTS,
    PREDICATES,
    PREDICATES_THAT_NEVER_RUN,
    PRIORITIES,
    PRIORITY_ARGUMENTS,
)
from podium.releases import V1_13 as RELEASE

GATES: Final = (
    FeatureGate(
        "AttachVolumeLimit",
        "nodes tell how many volumes they attach, and CSI volumes are counted",
        default=True,
    ),
    FeatureGate(
        "BalanceAttachedNodeVolumes",
        "BalancedResourceAllocation looks at volumes too",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "BlockVolume",
        "a claim and its volume must agree on being a block device or a file system",
        default=True,
        fixed=True,
    ),
    FeatureGate("EnableEquivalenceClassCache", "nothing", default=False, stage="Alpha"),
    FeatureGate(
        "PodPriority", "pods of higher priority go first and may preempt others", default=True
    ),
    FeatureGate(
        "ResourceLimitsPriorityFunction",
        "ResourceLimitsPriority exists and is part of the providers",
        default=False,
        stage="Alpha",
    ),
    FeatureGate(
        "TaintNodesByCondition",
        "taints instead of conditions keep pods off nodes in trouble",
        default=True,
    ),
    FeatureGate(
        "VolumeScheduling",
        "CheckVolumeBinding works, and claims may wait for their first pod",
        default=True,
    ),
)

V1_13: Final = Generation(
    release=RELEASE,
    gates=GATES,
    predicates=PREDICATES,
    predicates_that_never_run=PREDICATES_THAT_NEVER_RUN,
    priorities=PRIORITIES,
    predicate_arguments=PREDICATE_ARGUMENTS,
    priority_arguments=PRIORITY_ARGUMENTS,
    conduct=Conduct(ties="round-robin"),
    extenders=ExtenderProtocol(
        has_unresolvable_nodes=False,
        refuses_other_nodes=False,
        needs_victims=False,
        counts_violations=False,
        formats_errors=True,
        failed="Failed",
    ),
)
