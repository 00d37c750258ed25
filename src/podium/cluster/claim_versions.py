"""The next version of a resource claim: bound, no longer reserved, or without its devices.

Nothing is written here: functions return the next version of a claim, or raise why there is none.
The simulation puts it into its catalogue, the scheduler sends it to the API server.

Upstream: bindClaim, PostFilter and Unreserve of pkg/scheduler/framework/plugins/dynamicresources,
Kubernetes v1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.objects.kinds.devices import (
    CLAIM_FINALIZER,
    ClaimConsumer,
    ResourceClaim,
    ResourceClaimStatus,
)

if TYPE_CHECKING:
    from podium.engine.state.reservation import ClaimPlan
    from podium.objects.kinds.devices import Allocation
    from podium.objects.kinds.pod import Pod


class ClaimWriteError(Exception):
    """A claim cannot be written; the text is that of kube-scheduler."""


def needs_write(plan: ClaimPlan, pod: Pod) -> bool:
    """Whether anything is written for a claim: it is not reserved for the pod yet.

    Extended resources that a device plugin serves need no claim.
    """
    if plan.claim.is_reserved_for(pod.uid):
        return False
    return not (plan.special and plan.allocation is None and not plan.claim.spec.devices.requests)


def has_finalizer(claim: ResourceClaim) -> bool:
    """Whether a claim is protected from being deleted while it is allocated."""
    return CLAIM_FINALIZER in (claim.metadata.finalizers or ())


def check_bindable(claim: ResourceClaim, allocation: Allocation | None) -> None:
    """Raise an error if the claim, as it is now, cannot be given the allocation."""
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimWriteError(f"claim {claim.key} got deleted in the meantime")
    if allocation is not None and claim.status.allocation is not None:
        raise ClaimWriteError(f"claim {claim.key} got allocated elsewhere in the meantime")
    if allocation is None and claim.status.allocation is None:
        raise ClaimWriteError(f"claim {claim.key} got deallocated elsewhere in the meantime")


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim with the finalizer that protects it."""
    if has_finalizer(claim):
        return claim
    finalizers = [*(claim.metadata.finalizers or ()), CLAIM_FINALIZER]
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim without the finalizer that protects it."""
    finalizers = [each for each in claim.metadata.finalizers or () if each != CLAIM_FINALIZER]
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers or None))


def bound(claim: ResourceClaim, allocation: Allocation | None, pod: Pod, now: str) -> ResourceClaim:
    """The claim with its allocation, reserved for the pod."""
    given = claim.status.allocation if allocation is None else allocation
    assert given is not None
    if given.allocation_timestamp is None:
        given = replace(given, allocation_timestamp=now)
    consumers = [*(claim.status.reserved_for or ()), consumer_of(pod)]
    status = replace(claim.status, allocation=given, reserved_for=consumers)
    return replace(claim, status=status)


def is_bound(claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> bool:
    """Whether a claim is reserved for the pod and has the devices of the allocation."""
    given = claim.status.allocation
    if given is None or not claim.is_reserved_for(pod.uid):
        return False
    return allocation is None or _devices(given) == _devices(allocation)


def _devices(allocation: Allocation) -> list[tuple[str, str, str, str, str | None]]:
    """The devices of an allocation, and the requests that they are for."""
    return [
        (each.request, each.driver, each.pool, each.device, each.share_id)
        for each in allocation.devices.results or ()
    ]


def consumer_of(pod: Pod) -> ClaimConsumer:
    """The pod as a consumer of a claim."""
    return ClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)


def unreserved(claim: ResourceClaim, pod_uid: str) -> ResourceClaim:
    """The claim without its reservation for a pod; its allocation stays."""
    left = [each for each in claim.status.reserved_for or () if each.uid != pod_uid]
    return replace(claim, status=replace(claim.status, reserved_for=left or None))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim without allocation, reservations and what drivers reported."""
    return replace(claim, status=ResourceClaimStatus())
