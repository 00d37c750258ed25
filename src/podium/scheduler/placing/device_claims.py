"""Writing the resource claims of a pod before the pod is bound, and taking that back.

A claim that got devices is protected by a finalizer, then its allocation and its reservation for
the pod are written in one update of its status. Every write names the version of the claim that it
is about; on a conflict the claim is read again and checked again. So it is when the answer to a
write got lost: until the API server has said whether the claim is allocated, its devices are given
to no other claim. Claims of a pod that is not bound lose their reservation, and keep their
allocation.

Upstream: bindClaim, PostFilter and Unreserve of pkg/scheduler/framework/plugins/dynamicresources,
Kubernetes v1.36.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.cluster.claims import (
    ClaimWriteError,
    bound,
    check_bindable,
    has_finalizer,
    is_bound,
    needs_write,
    unreserved,
    with_finalizer,
    without_finalizer,
)
from podium.engine.rules.devices.claims import SPECIAL_NAME, BindingFailure, is_late, is_ready
from podium.kube.api import of_uid
from podium.kube.errors import ApiError, is_outcome_unknown, is_passing
from podium.kube.pauses import growing_pauses
from podium.objects.kinds.devices import ResourceClaim
from podium.scheduler.state.clock import written

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from podium.engine.framework.decision import ClaimRelease
    from podium.engine.state.devices import ResourceClaims
    from podium.engine.state.reservation import ClaimPlan, DevicePlan
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
_CONFLICT, _NOT_FOUND = 409, 404
#: So often a claim is written again after a conflict, or after an answer that got lost.
RETRIES: Final = 5
#: Seconds between two looks at the binding conditions of devices.
POLL_SECONDS: Final = 5.0


class DeviceClaims:
    """Writes the claims of pods that got a node, and undoes it."""

    def __init__(
        self, state: ClusterState, client: KubeApi, clocks: Clocks, rng: random.Random
    ) -> None:
        """*rng* is the source of jitter."""
        self._rng = rng
        self._state = state
        self._client = client
        self._clocks = clocks
        #: Claims that were made for the extended resources of a pod that is not bound yet.
        self._made: dict[str, ResourceClaim] = {}

    @property
    def _claims(self) -> ResourceClaims:
        return self._state.cache.columns.catalog.resource_claims

    async def bind(self, pod: Pod, plan: DevicePlan, *, timeout_seconds: float) -> None:
        """Allocate and reserve all claims of the pod, and wait until their devices are ready."""
        found: list[ResourceClaim] = []
        for each in plan.claims:
            if not needs_write(each, pod):
                if each.claim.name != SPECIAL_NAME:
                    found.append(each.claim)
                continue
            claim = await self._bind_one(pod, each)
            found.append(claim)
            if each.special:
                await self._note_extended(pod, plan, claim)
        self._made.pop(pod.uid, None)
        if any(_has_conditions(claim) for claim in found):
            await self._wait(found, timeout_seconds)

    async def _bind_one(self, pod: Pod, plan: ClaimPlan) -> ResourceClaim:
        claim = plan.claim
        if plan.special and claim.name == SPECIAL_NAME:
            claim = await self._create(pod, plan)
        lost = False
        for _ in range(RETRIES):
            check_bindable(claim, plan.allocation)
            try:
                if plan.allocation is not None and not has_finalizer(claim):
                    finalizers = with_finalizer(claim).metadata.finalizers
                    claim = await self._patch(claim, {"metadata": {"finalizers": finalizers}})
                now = written(self._clocks.wall())
                status = msgspec.to_builtins(bound(claim, plan.allocation, pod, now).status)
                status.pop("devices", None)  # drivers write these
                claim = await self._patch(claim, {"status": status}, status=True)
            except ApiError as error:
                may_succeed = error.status == _CONFLICT or is_outcome_unknown(error)
                lost = lost or is_outcome_unknown(error)
                if not may_succeed and not lost:
                    raise
                claim = await self._read_until_answered(claim)
                if lost and is_bound(claim, plan.allocation, pod):
                    return self._note_written(claim, plan)
                if not may_succeed:
                    raise
            else:
                return self._note_written(claim, plan)
        raise ClaimWriteError(f"claim {claim.key} was not written in {RETRIES} attempts")

    def _note_written(self, claim: ResourceClaim, plan: ClaimPlan) -> ResourceClaim:
        """Count the devices of a claim as taken, although no watch has reported it yet."""
        if plan.allocation is not None:
            self._state.claim_written(claim)
        return claim

    async def _create(self, pod: Pod, plan: ClaimPlan) -> ResourceClaim:
        """Make the claim for extended resources; from now on it stands for the planned one."""
        about = plan.claim.metadata
        metadata = {
            "generateName": about.generate_name,
            "annotations": about.annotations,
            "ownerReferences": msgspec.to_builtins(about.owner_references),
        }
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": msgspec.to_builtins(plan.claim.spec),
        }
        made = _decoded(await self._client.create(CLAIMS.format(pod.namespace), body))
        self._made[pod.uid] = made
        self._state.claim_made(pod, made)
        return made

    async def _note_extended(self, pod: Pod, plan: DevicePlan, claim: ResourceClaim) -> None:
        if not plan.mappings:
            raise ClaimWriteError(
                f"nil or empty request mappings, no update of pod {pod.key} "
                "ExtendedResourceClaimStatus"
            )
        status = {
            "requestMappings": msgspec.to_builtins(list(plan.mappings)),
            "resourceClaimName": claim.name,
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        patch = {"status": {"extendedResourceClaimStatus": status}}
        await self._client.patch(path, {"metadata": of_uid(pod.metadata.uid), **patch})

    async def _wait(self, claims: list[ResourceClaim], timeout_seconds: float) -> None:
        """Wait until drivers report that all devices are ready."""
        while True:
            waiting = False
            for each in claims:
                claim = self._claims.get(each.name, each.namespace) or each
                if claim.status.allocation is None:
                    claim = each  # its informer has not reported the allocation yet
                try:
                    ready = is_ready(claim)
                except BindingFailure as failure:
                    raise ClaimWriteError(str(failure)) from failure
                if not ready:
                    if is_late(claim, timeout_seconds, self._clocks.wall()):
                        raise ClaimWriteError(f"device binding timeout: claim={claim.name}")
                    waiting = True
            if not waiting:
                return
            await self._clocks.sleep(POLL_SECONDS)

    # --- undo -------------------------------------------------------------------------------------

    async def unreserve(self, pod: Pod, plan: DevicePlan) -> None:
        """The pod is not bound: its claims are free for others, one made for it is deleted."""
        for each in plan.claims:
            if not each.special:
                await self._quietly(pod, self._unreserve_one, each.claim, pod.uid)
        made = self._made.pop(pod.uid, None)
        if made is not None:
            await self._quietly(pod, self._delete, made)

    async def _unreserve_one(self, claim: ResourceClaim, pod_uid: str) -> None:
        for _ in range(RETRIES):
            before = self._claims.get(claim.name, claim.namespace)
            claim = await self._read(claim)
            if claim.is_reserved_for(pod_uid):
                left = msgspec.to_builtins(unreserved(claim, pod_uid).status.reserved_for)
                try:
                    claim = await self._patch(claim, {"status": {"reservedFor": left}}, status=True)
                except ApiError as error:
                    if error.status != _CONFLICT:
                        raise
                    continue
            self._state.apply(self._take_over, before, claim)
            return

    def _take_over(self, before: ResourceClaim | None, claim: ResourceClaim) -> None:
        """Know the claim as it was answered, unless a watch has reported it meanwhile.

        The watch may be late: the next attempt of the pod must not find the reservation that was
        taken back.
        """
        known = self._claims.get(claim.name, claim.namespace)
        if known is None or known is not before or known.uid != claim.uid:
            return
        if known.metadata.resource_version != claim.metadata.resource_version:
            self._state.index("ResourceClaim").put_answered(claim)

    async def release(self, pod: Pod, release: ClaimRelease) -> None:
        """Give a claim back, or delete it, so that the pod gets other devices."""
        namespace, _, name = release.claim.partition("/")
        claim = self._claims.get(name, namespace)
        if claim is None or claim.uid != release.uid:
            return
        if release.delete:
            await self._quietly(pod, self._delete, claim)
            return
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self._quietly(pod, self._patch, claim, {"status": status}, status=True)

    async def _delete(self, claim: ResourceClaim) -> None:
        for _ in range(RETRIES):
            claim = await self._read(claim)
            try:
                if has_finalizer(claim):
                    finalizers = without_finalizer(claim).metadata.finalizers
                    claim = await self._patch(claim, {"metadata": {"finalizers": finalizers}})
                await self._client.delete(_path(claim), {"preconditions": {"uid": claim.uid}})
            except ApiError as error:
                if error.status != _CONFLICT:
                    raise
            else:
                self._state.claim_deleted(claim)
                return

    async def _quietly(
        self, pod: Pod, write: Callable[..., Any], *arguments: Any, **options: Any
    ) -> None:
        """Write; a claim that is gone needs nothing, the next attempt meets other failures."""
        try:
            await write(*arguments, **options)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                logger.warning("claims of pod %s: %s", pod.key, error)

    # --- requests ---------------------------------------------------------------------------------

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        return _decoded(await self._client.get(_path(claim)))

    async def _read_until_answered(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as the API server has it, which is asked again as long as it cannot say."""
        told, pauses = False, growing_pauses(self._rng)
        while True:
            try:
                return await self._read(claim)
            except ApiError as error:
                if not is_passing(error):
                    raise
                if not told:
                    what = "claim %s: it is not known whether it was written: %s"
                    logger.warning(what, claim.key, error)
                    told = True
                await self._clocks.sleep(max(next(pauses), error.retry_after or 0.0))

    async def _patch(
        self, claim: ResourceClaim, patch: dict[str, Any], *, status: bool = False
    ) -> ResourceClaim:
        """Change the claim as it is known; a conflict if it was changed meanwhile."""
        known = {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **known}}
        path = f"{_path(claim)}/status" if status else _path(claim)
        return _decoded(await self._client.patch(path, body))


def _path(claim: ResourceClaim) -> str:
    return f"{CLAIMS.format(claim.namespace)}/{claim.name}"


def _decoded(answer: Any) -> ResourceClaim:
    return msgspec.convert(answer, ResourceClaim)


def _has_conditions(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    results = (allocation.devices.results if allocation is not None else None) or ()
    return any(each.binding_conditions for each in results)
