"""The next version of a resource claim, and what a simulation writes.

Functions return the next version of a claim (bound, no longer reserved, without its devices) or
raise why there is none. The simulation puts it into its catalogue, the scheduler sends it to the
API server.

Upstream: bindClaim, PostFilter and Unreserve of pkg/scheduler/framework/plugins/dynamicresources,
Kubernetes v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.engine.rules.devices.claims import SPECIAL_NAME
from podium.objects.kinds.devices import (
    CLAIM_FINALIZER,
    AllocatedDeviceStatus,
    ClaimConsumer,
    DeviceCondition,
    ResourceClaim,
    ResourceClaimStatus,
)
from podium.objects.kinds.pod import ExtendedResourceClaimStatus

if TYPE_CHECKING:
    from podium.engine.framework.decision import ClaimRelease
    from podium.engine.state.devices import ResourceClaims
    from podium.engine.state.reservation import ClaimPlan, DevicePlan
    from podium.objects.kinds.devices import Allocation
    from podium.objects.kinds.pod import Pod

#: In place of the random characters at the end of a generated name.
_SUFFIX: Final = "00000"


@dataclass(slots=True)
class ClaimWrites:
    """What was written for a pod."""

    #: The claims after the attempt, by `namespace/name`; None for one that was deleted.
    claims: dict[str, ResourceClaim | None] = field(default_factory=dict)
    #: The claim for the extended resources of the pod.
    extended: ExtendedResourceClaimStatus | None = None
    #: Why the pod cannot be bound; its reservations are taken back.
    error: str = ""


class ClaimWriter:
    """Writes claims into the catalogue of a simulation, as the scheduler writes them.

    Everything up to the binding of the pod happens at once. Drivers are quick: binding conditions
    of devices turn true as soon as the claim is reserved.
    """

    def __init__(self, claims: ResourceClaims) -> None:
        self._claims = claims

    def bind(self, pod: Pod, plan: DevicePlan, now: float) -> ClaimWrites:
        """Allocate and reserve the claims of a pod; on an error, take the reservations back."""
        found = ClaimWrites()
        text = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made: list[ResourceClaim] = []
        try:
            for each in plan.claims:
                if needs_write(each, pod):
                    self._bind_one(pod, each, text, found, made)
                    if each.special:
                        self._note_extended(pod, plan, made[-1], found)
        except ClaimWriteError as error:
            found.error = str(error)
            found.extended = None
            self._take_back(pod, plan, made, found)
        return found

    def _bind_one(
        self, pod: Pod, plan: ClaimPlan, now: str, found: ClaimWrites, made: list[ResourceClaim]
    ) -> None:
        claim = plan.claim
        if plan.special and claim.name == SPECIAL_NAME:
            self._create(pod, claim, found)
            current = self._claims.get(_special_name(pod), pod.namespace)
            made_here = True
        else:
            current = self._claims.get(claim.name, claim.namespace)
            made_here = False
        if current is None:
            raise ClaimWriteError(f"claim {claim.key} got deleted in the meantime")
        if made_here:
            made.append(current)
        check_bindable(current, plan.allocation)
        if plan.allocation is not None:
            current = with_finalizer(current)
        current = _prepared(bound(current, plan.allocation, pod, now))
        self._put(current, found)
        if made_here:
            made[-1] = current
        else:
            made.append(current)

    def _create(self, pod: Pod, claim: ResourceClaim, found: ClaimWrites) -> None:
        name = _special_name(pod)
        about = replace(claim.metadata, name=name, uid=f"{pod.namespace}/{name}")
        self._put(replace(claim, metadata=about), found)

    def _note_extended(
        self, pod: Pod, plan: DevicePlan, claim: ResourceClaim, found: ClaimWrites
    ) -> None:
        if not plan.mappings:
            raise ClaimWriteError(
                f"nil or empty request mappings, no update of pod {pod.key} "
                "ExtendedResourceClaimStatus"
            )
        found.extended = ExtendedResourceClaimStatus(list(plan.mappings), claim.name)

    def _take_back(
        self, pod: Pod, plan: DevicePlan, made: list[ResourceClaim], found: ClaimWrites
    ) -> None:
        """The pod is not bound: claims are no longer reserved for it, allocations stay."""
        written = {claim.key for claim in made}
        for each in plan.claims:
            key = each.claim.key
            current = self._claims.get(each.claim.name, each.claim.namespace)
            if each.special or current is None:
                continue
            if (key in written or each.claim.is_reserved_for(pod.uid)) and current.is_reserved_for(
                pod.uid
            ):
                self._put(unreserved(current, pod.uid), found)
        special = next((each for each in plan.claims if each.special), None)
        if special is not None:
            name = _special_name(pod) if special.claim.name == SPECIAL_NAME else special.claim.name
            current = self._claims.get(name, pod.namespace)
            if current is not None:
                self._claims.drop(current)
                found.claims[current.key] = None

    def allocate(self, pod: Pod, plan: DevicePlan, now: float) -> None:
        """Allocate the claims of a plan and reserve them for no pod."""
        for claim in self.bind(pod, plan, now).claims.values():
            if claim is not None:
                self._claims.put(unreserved(claim, pod.uid))

    def gone(self, pod: Pod) -> None:
        """The pod is gone: claims that were made for it go, others lose its reservation.

        A claim that no pod needs any more is deallocated.
        """
        made = self._claims.made_for(pod.uid, pod.name)
        if made is not None:
            self._claims.drop(made)
        noted = {each.name: each for each in pod.status.resource_claim_statuses or ()}
        for entry in pod.spec.resource_claims or ():
            status = noted.get(entry.name)
            name = entry.resource_claim_name or (status and status.resource_claim_name) or ""
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                continue
            if entry.resource_claim_name is None:
                self._claims.drop(claim)
            elif claim.is_reserved_for(pod.uid):
                left = unreserved(claim, pod.uid)
                self._claims.put(left if left.status.reserved_for else deallocated(left))

    def release(self, release: ClaimRelease) -> ClaimWrites:
        """Give a claim back, or delete it."""
        found = ClaimWrites()
        namespace, _, name = release.claim.partition("/")
        claim = self._claims.get(name, namespace)
        if claim is None:
            return found
        if release.delete:
            self._claims.drop(claim)
            found.claims[claim.key] = None
        else:
            self._put(deallocated(claim), found)
        return found

    def _put(self, claim: ResourceClaim, found: ClaimWrites) -> None:
        self._claims.put(claim)
        found.claims[claim.key] = claim


def _special_name(pod: Pod) -> str:
    return f"{pod.name}-extended-resources-{_SUFFIX}"


def _prepared(claim: ResourceClaim) -> ResourceClaim:
    """The claim once its drivers have prepared the devices."""
    allocation = claim.status.allocation
    results = (allocation.devices.results if allocation is not None else None) or ()
    waiting = [each for each in results if each.binding_conditions]
    if not waiting:
        return claim
    statuses = list(claim.status.devices or ())
    for result in waiting:
        place = next(
            (
                i
                for i, each in enumerate(statuses)
                if (each.driver, each.pool, each.device)
                == (result.driver, result.pool, result.device)
            ),
            None,
        )
        if place is None:
            place = len(statuses)
            statuses.append(AllocatedDeviceStatus(result.driver, result.pool, result.device))
        names = result.binding_conditions or ()
        kept = [each for each in statuses[place].conditions or () if each.type not in names]
        true = [DeviceCondition(name, "True") for name in names]
        statuses[place] = replace(statuses[place], conditions=[*kept, *true])
    return replace(claim, status=replace(claim.status, devices=statuses))


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
