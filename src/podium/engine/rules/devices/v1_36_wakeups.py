"""Which events wake pods that DynamicResources rejected.

Upstream: the queueing hints of dynamicresources, Kubernetes v1.36. They look at the other claims of
the waiting pod; a hint here sees the pod and the object of the event alone. Where the claims of the
pod have a problem, the pod is held back before it is tried, so that an attempt too many is rare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.v1_36_wakeups import always, is_self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.declaration import Events, Requests
    from podium.engine.framework.rule import FilterRule
    from podium.objects.kinds.devices import ResourceClaim
    from podium.objects.kinds.pod import Pod


def claim_changed(waiting: Pod, old: ResourceClaim | None, new: ResourceClaim) -> bool:
    """Devices became free, or the status of a claim of the pod changed."""
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if not _uses(waiting, new):
        return False
    return old is None or old.status != new.status


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    if pod.namespace != claim.namespace:
        return False
    made = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
    }
    return any(
        (entry.resource_claim_name or made.get(entry.name)) == claim.name
        for entry in pod.spec.resource_claims or ()
    )


def events_of(_: Sequence[FilterRule], __: Requests) -> Events:
    """Nodes, claims, classes and slices, and the claims generated for the pod itself."""
    return {
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "Node UpdateNodeAllocatable": always,
        "ResourceClaim Add": claim_changed,
        "ResourceClaim Update": claim_changed,
        "Pod UpdatePodGeneratedResourceClaim": is_self,
        "DeviceClass Add": always,
        "DeviceClass Update": always,
        "ResourceSlice Add": always,
        "ResourceSlice Update": always,
    }
