"""What a reserve rule sets aside for a pod on the chosen node.

A reservation is a value of the decision, which itself changes nothing. The cache assumes it with
the pod, the scheduler carries it out before the pod is bound, and it is released with the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from podium.objects.kinds.devices import Allocation, ResourceClaim
from podium.objects.kinds.pod import ContainerExtendedResource

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.state.catalog import Catalog
    from podium.objects.kinds.pod import Pod


class PreBindSteps(Protocol):
    """What a scheduler can do for a pod before it binds the pod; each may take time, and fail."""

    async def annotate(self, key: str, value: object) -> None:
        """Write an annotation of the pod, as JSON."""

    async def call(self, step: Callable[[], None]) -> None:
        """Call a function that may block."""

    async def bind_claims(self, plan: DevicePlan) -> None:
        """Write the claims of the pod, and wait until their devices are ready."""


class Reservation(msgspec.Struct, frozen=True):
    """Something set aside for a pod on a node. The defaults do nothing."""

    @property
    def value(self) -> object:
        """What rules of users see of it (`node.reserved`)."""
        return self

    @property
    def volumes(self) -> VolumePlan | None:
        """This, if it is a plan for volumes, which are bound after all other steps."""
        return None

    @property
    def devices(self) -> DevicePlan | None:
        """This, if it is a plan for devices."""
        return None

    @property
    def has_pre_bind(self) -> bool:
        """Whether `pre_bind` does anything."""
        return False

    def assume(self, pod: Pod, node: str, catalog: Catalog) -> None:
        """The pod counts on its node from now on: let later decisions see what it takes."""

    async def pre_bind(self, pod: str, node: str, steps: PreBindSteps) -> None:
        """Carry it out before the pod (namespace/name) is bound."""

    def release(self, pod: str, node: str, catalog: Catalog, *, bound: bool) -> None:  # noqa: ARG002
        """The pod was not *bound* after all, or has left the node."""
        self.undo(pod, node)

    def undo(self, pod: str, node: str) -> None:
        """Tell the rule that it is over, also if it was never assumed."""


class VolumePlan(Reservation, frozen=True):
    """What becomes of a pod's waiting claims on the chosen node."""

    bind: dict[str, str]  #: claim -> volume
    provision: tuple[str, ...]  #: claims to make a volume for
    #: Claims that the pod mounts twice take a second volume, which no other claim gets.
    again: tuple[tuple[str, str], ...] = ()

    @property
    def volumes(self) -> VolumePlan:
        """The plan itself."""
        return self

    def assume(self, pod: Pod, node: str, catalog: Catalog) -> None:
        """Promise the volumes to the claims, until the API server says that they are bound."""
        for name, volume in (*self.bind.items(), *self.again):
            catalog.promise_volume(volume, catalog.claims.get(name, pod.namespace))
        for name in self.provision:
            catalog.promise_provisioning(f"{pod.namespace}/{name}", node)

    def release(self, pod: str, node: str, catalog: Catalog, *, bound: bool) -> None:  # noqa: ARG002
        """Withdraw the promises to a pod that was not bound; others wait for the API server."""
        if bound:
            return
        namespace = pod.partition("/")[0]
        for _, volume in (*self.bind.items(), *self.again):
            catalog.withdraw_promise(volume)
        for name in self.provision:
            catalog.withdraw_promise(f"{namespace}/{name}")


class ClaimPlan(msgspec.Struct, frozen=True):
    """A claim of the pod, and the devices that it gets."""

    #: The claim as it was when the node was chosen.
    claim: ResourceClaim
    #: What it gets; None for a claim that was allocated before, or that the node needs no devices
    #: for.
    allocation: Allocation | None = None
    #: Whether it is the claim for the extended resources of the pod.
    special: bool = False


class DevicePlan(Reservation, frozen=True):
    """The claims of a pod, in order, the one for its extended resources last."""

    claims: tuple[ClaimPlan, ...]
    #: Which requests serve the extended resources of which containers.
    mappings: tuple[ContainerExtendedResource, ...] = ()
    #: How long the devices may take to become ready.
    binding_timeout_seconds: float = 600.0

    @property
    def devices(self) -> DevicePlan:
        """The plan itself."""
        return self

    @property
    def has_pre_bind(self) -> bool:
        """The claims are written before the pod is bound."""
        return True

    def assume(self, pod: Pod, node: str, catalog: Catalog) -> None:  # noqa: ARG002
        """Count the devices as in use, until the claims say so themselves."""
        for each in self.claims:
            if each.allocation is not None:
                catalog.resource_claims.reserve(each.claim.uid, each.allocation)

    async def pre_bind(self, pod: str, node: str, steps: PreBindSteps) -> None:  # noqa: ARG002
        """Write the claims."""
        await steps.bind_claims(self)

    def release(self, pod: str, node: str, catalog: Catalog, *, bound: bool) -> None:  # noqa: ARG002
        """Give the devices back that no claim holds yet."""
        for each in self.claims:
            if each.allocation is not None:
                catalog.resource_claims.release(each.claim.uid)
