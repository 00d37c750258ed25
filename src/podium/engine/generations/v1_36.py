"""Every plugin of v1.36, in the order in which the default profile runs them.

Default plugins and weights, extension points, arguments with their checks, the rules of a profile
and the events that wake pods are derived from the declarations in this list.
"""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration
from podium.engine.preemption.v1_36 import DEFAULT_PREEMPTION
from podium.engine.rules.devices.v1_36 import DYNAMIC_RESOURCES
from podium.engine.rules.gates.v1_36 import SCHEDULING_GATES
from podium.engine.rules.images.v1_36 import IMAGE_LOCALITY
from podium.engine.rules.named_only.v1_36 import (
    DEFAULT_BINDER,
    GANG_SCHEDULING,
    POD_GROUP_PODS_COUNT,
    PRIORITY_SORT,
    TOPOLOGY_PLACEMENT_GENERATOR,
)
from podium.engine.rules.node_affinity.v1_36 import NODE_AFFINITY
from podium.engine.rules.nodes.v1_36 import NODE_DECLARED_FEATURES, NODE_NAME, NODE_UNSCHEDULABLE
from podium.engine.rules.pod_affinity.v1_36 import INTER_POD_AFFINITY
from podium.engine.rules.ports.v1_36 import NODE_PORTS
from podium.engine.rules.resources.v1_36 import (
    NODE_RESOURCES_BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
)
from podium.engine.rules.spreading.v1_36 import POD_TOPOLOGY_SPREAD
from podium.engine.rules.taints.v1_36 import TAINT_TOLERATION
from podium.engine.rules.volumes.binding.v1_36 import VOLUME_BINDING
from podium.engine.rules.volumes.conflicts.v1_36 import VOLUME_RESTRICTIONS
from podium.engine.rules.volumes.limits.v1_36 import NODE_VOLUME_LIMITS
from podium.engine.rules.volumes.zones.v1_36 import VOLUME_ZONE

_IN_ORDER: Final[tuple[PluginDeclaration, ...]] = (
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
#: Name -> plugin, in the order of the default plugins.
PLUGINS: Final = {plugin.name: plugin for plugin in _IN_ORDER}
