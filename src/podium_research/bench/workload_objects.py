"""Nodes, volumes, claims and devices that the operations of a workload create.

Upstream of the devices: test/integration/scheduler_perf/dra.go.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from podium.cluster.claims import ClaimWriter
from podium.errors import InputError
from podium.objects.completing.expansion import claim_of
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
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import (
    ClaimVolume,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    Volume,
)
from podium.objects.kinds.storage import (
    CsiNode,
    CsiNodeAllocatable,
    CsiNodeDriver,
    CsiNodeSpec,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeStatus,
)

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium.objects.kinds.node import Node
    from podium_research.bench.definitions import (
        AllocatableStrategy,
        CreateNodes,
        CreateResourceDriver,
        Params,
    )
    from podium_research.bench.templates import Template

HOSTNAME_LABEL = "kubernetes.io/hostname"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_Kind = TypeVar("_Kind", bound=Object)


def instantiate(
    template: Template, index: int, count: int, kind: type[_Kind], params: Params | None = None
) -> _Kind:
    """An object of the template, which must be of this kind."""
    found = template.make(index, count, params)
    if not isinstance(found, kind):
        what = f"holds a {found.kind}, where a {kind.__name__} is needed"
        raise InputError(what, where=str(template.path))
    return found


def prepare_node(node: Node, name: str, op: CreateNodes, index: int) -> Node:
    """The node with its name, and the labels and resources of the operation's strategies."""
    labels = {**node.labels, HOSTNAME_LABEL: name}
    if op.label_node_prepare_strategy is not None:
        values = op.label_node_prepare_strategy.label_values
        labels[op.label_node_prepare_strategy.label_key] = values[index % len(values)]
    if op.unique_node_label_strategy is not None:
        labels[op.unique_node_label_strategy.label_key] = name
    node = replace(node, metadata=replace(node.metadata, name=name, labels=labels))
    if op.node_allocatable_strategy is None:
        return node
    more = op.node_allocatable_strategy.node_allocatable
    allocatable = {**(node.status.allocatable or {}), **more}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def csi_node(name: str, strategy: AllocatableStrategy) -> CsiNode:
    """The CSINode of a node, with the limits of its drivers."""
    drivers = [
        CsiNodeDriver(name=driver, allocatable=CsiNodeAllocatable(count=limit.count))
        for driver, limit in strategy.csi_node_allocatable.items()
    ]
    made = CsiNode(kind="CSINode", spec=CsiNodeSpec(drivers=drivers))
    annotations = {MIGRATED_PLUGINS: ",".join(strategy.migrated_plugins)}
    return replace(made, metadata=replace(made.metadata, name=name, annotations=annotations))


def bound_volume(volume: PersistentVolume, namespace: str, index: int) -> PersistentVolume:
    """A volume with a disk of its own, bound to the claim with this index."""
    name = f"{namespace}-pv-{index}"
    spec = replace(volume.spec, claim_ref=ObjectReference(_claim(index), namespace, name))
    if spec.csi is not None:
        spec = replace(spec, csi=replace(spec.csi, volume_handle=name))
    if spec.aws_elastic_block_store is not None:
        disk = replace(spec.aws_elastic_block_store, volume_id=name)
        spec = replace(spec, aws_elastic_block_store=disk)
    metadata = replace(volume.metadata, name=name)
    return replace(volume, metadata=metadata, spec=spec, status=VolumeStatus("Bound"))


def bound_claim(claim: PersistentVolumeClaim, namespace: str, index: int) -> PersistentVolumeClaim:
    """The claim with this index, bound to its volume."""
    volume = f"{namespace}-pv-{index}"
    metadata = replace(claim.metadata, name=_claim(index), namespace=namespace, uid=volume)
    spec = replace(claim.spec, volume_name=volume)
    return replace(claim, metadata=metadata, spec=spec, status=VolumeStatus("Bound"))


def with_claim(pod: Pod, index: int) -> Pod:
    """The pod with a volume of the claim with this index."""
    volume = Volume(name="vol", persistent_volume_claim=ClaimVolume(_claim(index)))
    return replace(pod, spec=replace(pod.spec, volumes=[volume]))


def _claim(index: int) -> str:
    """The name of a claim; templates of other pods may name it."""
    return f"pvc-{index}"


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
