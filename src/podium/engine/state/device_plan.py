"""What is reserved for the claims of a pod on the chosen node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from podium.objects.kinds.devices import Allocation, ResourceClaim
    from podium.objects.kinds.pod import ContainerExtendedResource


class ClaimPlan(msgspec.Struct, frozen=True):
    """A claim of the pod, and the devices that it gets."""

    #: The claim as it was when the node was chosen.
    claim: ResourceClaim
    #: What it gets; None for a claim that was allocated before, or that the node needs no devices
    #: for.
    allocation: Allocation | None = None
    #: Whether it is the claim for the extended resources of the pod.
    special: bool = False


class DevicePlan(msgspec.Struct, frozen=True):
    """The claims of a pod, in order, the one for its extended resources last."""

    claims: tuple[ClaimPlan, ...]
    #: Which requests serve the extended resources of which containers.
    mappings: tuple[ContainerExtendedResource, ...] = ()
