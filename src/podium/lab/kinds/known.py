"""All kinds that the lab knows, and the strategy of a resource."""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.resources import Resource
from podium.lab.kinds import (
    autoscaler,
    config_map,
    cron_job,
    custom_resource_definition,
    daemon_set,
    deployment,
    device_class,
    disruption_budget,
    event,
    job,
    namespace,
    node,
    other_kinds,
    persistent_volume,
    pod,
    pod_group,
    priority_class,
    replica_set,
    resource_claim,
    resource_slice,
    service,
    stateful_set,
    storage_class,
)
from podium.lab.kinds.kind import CustomStrategy, CustomStrategyWithoutStatus, KindStrategy

#: The kinds that declare anything, by name.
KINDS: Mapping[str, KindStrategy] = {
    **autoscaler.KINDS,
    **config_map.KINDS,
    **cron_job.KINDS,
    **custom_resource_definition.KINDS,
    **daemon_set.KINDS,
    **deployment.KINDS,
    **device_class.KINDS,
    **disruption_budget.KINDS,
    **event.KINDS,
    **job.KINDS,
    **namespace.KINDS,
    **node.KINDS,
    **other_kinds.KINDS,
    **persistent_volume.KINDS,
    **pod.KINDS,
    **pod_group.KINDS,
    **priority_class.KINDS,
    **replica_set.KINDS,
    **resource_claim.KINDS,
    **resource_slice.KINDS,
    **service.KINDS,
    **stateful_set.KINDS,
    **storage_class.KINDS,
}
_DEFAULT = KindStrategy()
_CUSTOM = CustomStrategy(has_generation=True)
_CUSTOM_WITHOUT_STATUS = CustomStrategyWithoutStatus(has_generation=True)


def strategy_of(resource: Resource) -> KindStrategy:
    """The strategy of a resource's kind."""
    if resource.custom is not None:
        return _CUSTOM if "status" in resource.subresources else _CUSTOM_WITHOUT_STATUS
    return KINDS.get(resource.kind, _DEFAULT)
