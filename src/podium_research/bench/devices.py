"""Devices, claims and allocations that the operations of a workload create.

Upstream: test/integration/scheduler_perf/dra.go.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.cluster.claim_writes import ClaimWriter
from podium.errors import InputError
from podium.objects.completing.expand import claim_of
from podium.objects.kinds.devices import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium_research.bench.definitions import CreateResourceDriver, Params


class WorkloadDevices:
    """The claims of a workload in its simulated cluster."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._claims = simulation.cache.columns.catalog.resource_claims
        self._writer = ClaimWriter(self._claims)
        self._templates: dict[str, ResourceClaimTemplate] = {}
        #: Pods that have claims, or may get one for their extended resources, by uid.
        self._claimants: dict[str, Pod] = {}

    def add_template(self, template: ResourceClaimTemplate) -> None:
        """Make claims from a template for pods that are created from now on."""
        self._templates[template.key] = template

    def publish(self, op: CreateResourceDriver, params: Params) -> None:
        """Publish a slice for every node that the driver serves."""
        columns, count = self._simulation.cache.columns, op.devices(params)
        devices = [_device(number) for number in range(count)]
        for name in list(columns.nodes.row_of):
            if fnmatchcase(name, op.nodes):
                columns.catalog.resource_slices.put(_slice(op.driver_name, name, devices))

    def with_claims(self, pod: Pod) -> Pod:
        """The pod with a claim for each entry that names a template."""
        statuses = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            template = self._templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
            if template is None:
                what = f"there is no ResourceClaimTemplate {entry.resource_claim_template_name}"
                raise InputError(what, hint=f"create it in the namespace {pod.namespace} first")
            claim = claim_of(template, pod, entry.name, f"{pod.name}-{entry.name}")
            self._claims.put(claim)
            statuses.append(PodResourceClaimStatus(entry.name, claim.name))
        if not statuses:
            return pod
        return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))

    def note_placed(self, pod: Pod) -> None:
        """Remember a pod whose claims are released when it is deleted."""
        if not self._claims:
            return
        if pod.spec.resource_claims or self._claims.made_for(pod.uid, pod.name) is not None:
            self._claimants[pod.uid] = pod

    def pod_gone(self, uid: str) -> None:
        """Release the claims of a pod that was deleted."""
        pod = self._claimants.pop(uid, None)
        if pod is not None:
            self._writer.gone(pod)

    def allocate(self, namespace: str) -> None:
        """Allocate all claims of a namespace, each as for a pod that nothing else is asked of."""
        waiting = [
            claim
            for claim in self._claims
            if claim.status.allocation is None and namespace in {"", claim.namespace}
        ]
        for number, claim in enumerate(waiting):
            pod = _claimant(claim, number)
            plan = self._simulation.attempt(pod).devices
            if plan is None:
                what = (
                    f"claim {claim.key} cannot be allocated: number {number + 1} of {len(waiting)}"
                )
                raise InputError(what, hint="create more devices, or fewer claims")
            self._writer.allocate(pod, plan, self._simulation.cache.columns.decided_at)


def _claimant(claim: ResourceClaim, number: int) -> Pod:
    """A pod that uses a claim and asks for nothing else."""
    name = f"claimant-{number}"
    metadata = ObjectMeta(
        name=name, namespace=claim.namespace, uid=f"{claim.namespace}/claimants/{number}"
    )
    wanted = PodResourceClaim(name="claim", resource_claim_name=claim.name)
    return Pod(metadata=metadata, spec=PodSpec(resource_claims=[wanted]))


def _slice(driver: str, node: str, devices: list[Device]) -> ResourceSlice:
    pool = ResourcePool(name=node, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=driver, node_name=node, pool=pool, devices=devices)
    return ResourceSlice(kind="ResourceSlice", metadata=ObjectMeta(name=node), spec=spec)


def _device(number: int) -> Device:
    return Device(
        name=f"instance-{number}",
        attributes={
            "model": DeviceAttribute(string_value="A100"),
            "family": DeviceAttribute(string_value="GPU"),
            "driverVersion": DeviceAttribute(version_value="1.2.3"),
            "dra.example.com/numa": DeviceAttribute(int_value=number),
        },
        capacity={"memory": DeviceCapacity("1Gi")},
    )
