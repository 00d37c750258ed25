"""The claims of a pod: those it names, one for its extended resources, and whether they are ready.

Upstream: pkg/scheduler/framework/plugins/dynamicresources, and
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from podium.objects.kinds.devices import ResourceClaim

if TYPE_CHECKING:
    from podium.engine.state.devices import ResourceClaims
    from podium.objects.kinds.devices import AllocatedDevice, AllocatedDeviceStatus
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
