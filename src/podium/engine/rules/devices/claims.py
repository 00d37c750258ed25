"""The claims of a pod: those it names, one for its extended resources, and how they are written.

Nothing is written here: functions return the next version of a claim, or raise why there is none.
The simulation puts it into its catalogue, the scheduler sends it to the API server.

Upstream: bindClaim, PostFilter and Unreserve of pkg/scheduler/framework/plugins/dynamicresources,
and staging/src/k8s.io/dynamic-resource-allocation/resourceclaim, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.objects.kinds.devices import (
    CLAIM_FINALIZER,
    ClaimConsumer,
    ResourceClaim,
    ResourceClaimStatus,
)

if TYPE_CHECKING:
    from podium.engine.state.devices import ResourceClaims
    from podium.engine.state.reservation import ClaimPlan
    from podium.objects.kinds.devices import AllocatedDevice, AllocatedDeviceStatus, Allocation
    from podium.objects.kinds.pod import Pod, PodResourceClaim


#: The claim for extended resources before it is written; no API server has one of this name.
SPECIAL_NAME = "<extended-resources>"


class ClaimProblem(Exception):  # noqa: N818 - a reason to wait, not an error
    """A claim of the pod is missing, is being deleted, or belongs to another pod."""


def claims_of(pod: Pod, claims: ResourceClaims, word: str = "Pod") -> list[ResourceClaim]:
    """The claims that the pod names, in order; the first problem is raised.

    *word* is what texts call the pod that a claim was not made for.
    """
    found = []
    for entry in pod.spec.resource_claims or ():
        name, made = _name_of(pod, entry)
        if name is None:
            continue
        claim = claims.get(name, pod.namespace)
        if claim is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'resourceclaim "{claim.name}" is being deleted')
        owner = claim.metadata.controller()
        if made and (owner is None or owner.uid != pod.uid):
            raise ClaimProblem(
                f"ResourceClaim {claim.key} was not created for {word} {pod.key} "
                f"({word} is not owner)"
            )
        found.append(claim)
    return found


def _name_of(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The name of the claim of an entry, None for none, and whether a template made it."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimProblem(
            f'pod "{pod.key}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name or None, True
    raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod in one attempt; the one for extended resources comes last."""

    named: Sequence[ResourceClaim]
    special: ResourceClaim | None = None
    #: Extended resources of the pod, with amounts; empty without a special claim.
    resources: dict[str, int] = field(default_factory=dict)

    @property
    def all(self) -> list[ResourceClaim]:
        """Every claim, in order."""
        return [*self.named, *([self.special] if self.special is not None else [])]

    @property
    def unallocated(self) -> list[ResourceClaim]:
        """The claims that need an allocation, in order."""
        return [claim for claim in self.all if claim.status.allocation is None]


class BindingFailure(Exception):  # noqa: N818 - a state of a device
    """A driver reports that a device cannot be prepared."""


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all binding conditions of the allocated devices are true."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results or ():
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        conditions = {each.type: each for each in reversed(status.conditions or ())}
        for name in result.binding_failure_conditions or ():
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                raise BindingFailure(
                    f"device binding failed: claim={claim.name}, reason={failed.reason}, "
                    f'message="{failed.message}"'
                )
        for name in result.binding_conditions:
            if name not in conditions or conditions[name].status != "True":
                return False
    return True


def is_late(claim: ResourceClaim, timeout_seconds: float, now: float) -> bool:
    """Whether the devices should have been prepared by now."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not any(each.binding_conditions is not None for each in allocation.devices.results or ()):
        return False
    try:
        started = datetime.fromisoformat(allocation.allocation_timestamp).timestamp()
    except ValueError:
        return False
    return started + timeout_seconds < now


def _status_of(claim: ResourceClaim, result: AllocatedDevice) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    for each in claim.status.devices or ():
        if (each.driver, each.pool, each.device) == wanted:
            return each
    return None


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
