"""Every plugin that is declared, in the order in which the default profile of v1.36 runs them.

Default plugins and weights, extension points, arguments with their checks, the rules of a profile
and the events that wake pods are derived from the declarations in this list. A generation has a
list of its own, made from this one.
"""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration
from podium.engine.preemption.plugin import DEFAULT_PREEMPTION
from podium.engine.rules.devices.plugin import DYNAMIC_RESOURCES
from podium.engine.rules.gates import SCHEDULING_GATES
from podium.engine.rules.images import IMAGE_LOCALITY
from podium.engine.rules.named_only import (
    DEFAULT_BINDER,
    GANG_SCHEDULING,
    POD_GROUP_PODS_COUNT,
    PRIORITY_SORT,
    TOPOLOGY_PLACEMENT_GENERATOR,
)
from podium.engine.rules.node_affinity import NODE_AFFINITY
from podium.engine.rules.nodes import NODE_DECLARED_FEATURES, NODE_NAME, NODE_UNSCHEDULABLE
from podium.engine.rules.pod_affinity import INTER_POD_AFFINITY
from podium.engine.rules.ports import NODE_PORTS
from podium.engine.rules.resources.balanced_allocation import NODE_RESOURCES_BALANCED_ALLOCATION
from podium.engine.rules.resources.fit import NODE_RESOURCES_FIT
from podium.engine.rules.spreading import POD_TOPOLOGY_SPREAD
from podium.engine.rules.taints import TAINT_TOLERATION
from podium.engine.rules.volumes.binding import VOLUME_BINDING
from podium.engine.rules.volumes.conflicts import VOLUME_RESTRICTIONS
from podium.engine.rules.volumes.limits import NODE_VOLUME_LIMITS
from podium.engine.rules.volumes.zones import VOLUME_ZONE

PLUGINS: Final[tuple[PluginDeclaration, ...]] = (
    SCHEDULING_GATES,
    PRIORITY_SORT,
    NODE_UNSCHEDULABLE,
    NODE_NAME,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    VOLUME_RESTRICTIONS,
    NODE_VOLUME_LIMITS,
    VOLUME_BINDING,
    VOLUME_ZONE,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    # Freeing an idle device is tried before DefaultPreemption evicts pods.
    DYNAMIC_RESOURCES,
    DEFAULT_PREEMPTION,
    NODE_RESOURCES_BALANCED_ALLOCATION,
    IMAGE_LOCALITY,
    DEFAULT_BINDER,
    NODE_DECLARED_FEATURES,
    GANG_SCHEDULING,
    TOPOLOGY_PLACEMENT_GENERATOR,
    POD_GROUP_PODS_COUNT,
)
