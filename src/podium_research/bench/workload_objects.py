"""Nodes, volumes and claims that the operations of a workload create."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import ClaimVolume, Pod, Volume
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
    from podium.objects.kinds.node import Node
    from podium_research.bench.definitions import AllocatableStrategy, CreateNodes, Params
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
