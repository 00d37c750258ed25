"""Every predicate and priority of v1.13, and the arguments with which a Policy makes more of them.

What a Policy can name, the algorithm providers and what is shown of a rule are derived from the
declarations in these lists.
"""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import (
    PolicyArgument,
    PredicateDeclaration,
    PriorityDeclaration,
)
from podium.engine.framework.rule import FilterRule, ScoreRule
from podium.engine.rules.images import IMAGE_LOCALITY_PRIORITY
from podium.engine.rules.node_affinity import MATCH_NODE_SELECTOR, NODE_AFFINITY_PRIORITY
from podium.engine.rules.nodes import (
    CHECK_NODE_CONDITION,
    CHECK_NODE_DISK_PRESSURE,
    CHECK_NODE_LABEL_PRESENCE,
    CHECK_NODE_MEMORY_PRESSURE,
    CHECK_NODE_PID_PRESSURE,
    CHECK_NODE_UNSCHEDULABLE,
    EQUAL_PRIORITY,
    HOST_NAME,
    LABEL_PREFERENCE,
    LABELS_PRESENCE,
    NODE_PREFER_AVOID_PODS_PRIORITY,
)
from podium.engine.rules.pod_affinity import (
    INTER_POD_AFFINITY_PRIORITY,
    MATCH_INTER_POD_AFFINITY,
)
from podium.engine.rules.ports import POD_FITS_HOST_PORTS, POD_FITS_PORTS
from podium.engine.rules.resources.predicates import (
    BALANCED_RESOURCE_ALLOCATION,
    CAPACITY_RATIO,
    GENERAL_PREDICATES,
    LEAST_REQUESTED_PRIORITY,
    MOST_REQUESTED_PRIORITY,
    POD_FITS_RESOURCES,
    REQUESTED_TO_CAPACITY_RATIO_PRIORITY,
    RESOURCE_LIMITS_PRIORITY,
)
from podium.engine.rules.service_affinity import (
    CHECK_SERVICE_AFFINITY,
    SERVICE_AFFINITY,
    SERVICE_ANTI_AFFINITY,
)
from podium.engine.rules.spreading import (
    SELECTOR_SPREAD_PRIORITY,
    SERVICE_SPREADING_PRIORITY,
)
from podium.engine.rules.taints import (
    POD_TOLERATES_NODE_NO_EXECUTE_TAINTS,
    POD_TOLERATES_NODE_TAINTS,
    TAINT_TOLERATION_PRIORITY,
)
from podium.engine.rules.volumes.binding import CHECK_VOLUME_BINDING
from podium.engine.rules.volumes.conflicts import NO_DISK_CONFLICT
from podium.engine.rules.volumes.limits import (
    MAX_AZURE_DISK_VOLUME_COUNT,
    MAX_CSI_VOLUME_COUNT_PRED,
    MAX_EBS_VOLUME_COUNT,
    MAX_GCEPD_VOLUME_COUNT,
)
from podium.engine.rules.volumes.zones import NO_VOLUME_ZONE_CONFLICT

#: In the order of evaluation, positions 1 to 22. Only predicates with a name in this list run: one
#: that an argument makes under any other name is configured and never evaluated.
PREDICATES: Final[tuple[PredicateDeclaration, ...]] = (
    CHECK_NODE_CONDITION,
    CHECK_NODE_UNSCHEDULABLE,
    GENERAL_PREDICATES,
    HOST_NAME,
    POD_FITS_HOST_PORTS,
    MATCH_NODE_SELECTOR,
    POD_FITS_RESOURCES,
    NO_DISK_CONFLICT,
    POD_TOLERATES_NODE_TAINTS,
    POD_TOLERATES_NODE_NO_EXECUTE_TAINTS,
    CHECK_NODE_LABEL_PRESENCE,
    CHECK_SERVICE_AFFINITY,
    MAX_EBS_VOLUME_COUNT,
    MAX_GCEPD_VOLUME_COUNT,
    MAX_CSI_VOLUME_COUNT_PRED,
    MAX_AZURE_DISK_VOLUME_COUNT,
    CHECK_VOLUME_BINDING,
    NO_VOLUME_ZONE_CONFLICT,
    CHECK_NODE_MEMORY_PRESSURE,
    CHECK_NODE_PID_PRESSURE,
    CHECK_NODE_DISK_PRESSURE,
    MATCH_INTER_POD_AFFINITY,
)
#: Names that are accepted and not in the order, so that they never run.
PREDICATES_THAT_NEVER_RUN: Final[tuple[PredicateDeclaration, ...]] = (POD_FITS_PORTS,)
PRIORITIES: Final[tuple[PriorityDeclaration, ...]] = (
    BALANCED_RESOURCE_ALLOCATION,
    EQUAL_PRIORITY,
    IMAGE_LOCALITY_PRIORITY,
    INTER_POD_AFFINITY_PRIORITY,
    LEAST_REQUESTED_PRIORITY,
    MOST_REQUESTED_PRIORITY,
    NODE_AFFINITY_PRIORITY,
    NODE_PREFER_AVOID_PODS_PRIORITY,
    REQUESTED_TO_CAPACITY_RATIO_PRIORITY,
    RESOURCE_LIMITS_PRIORITY,
    SELECTOR_SPREAD_PRIORITY,
    SERVICE_SPREADING_PRIORITY,
    TAINT_TOLERATION_PRIORITY,
)
#: In the order in which messages list them.
PREDICATE_ARGUMENTS: Final[tuple[PolicyArgument[FilterRule], ...]] = (
    SERVICE_AFFINITY,
    LABELS_PRESENCE,
)
PRIORITY_ARGUMENTS: Final[tuple[PolicyArgument[ScoreRule], ...]] = (
    SERVICE_ANTI_AFFINITY,
    LABEL_PREFERENCE,
    CAPACITY_RATIO,
)
