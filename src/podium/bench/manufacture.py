"""Nodes, volumes and claims as the operations of a workload want them."""

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
    from podium.bench.definitions import AllocatableStrategy, CreateNodes
    from podium.bench.templates import Template
    from podium.objects.kinds.node import Node

HOST_LABEL = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_Kind = TypeVar("_Kind", bound=Object)


def expected(template: Template, index: int, count: int, kind: type[_Kind]) -> _Kind:
    """What the template makes, if it is of this kind."""
    found = template.make(index, count)
    if not isinstance(found, kind):
        what = f"holds a {found.kind}, where a {kind.__name__} is needed"
        raise InputError(what, where=str(template.path))
    return found


def prepared(node: Node, name: str, op: CreateNodes, index: int) -> Node:
    """The node under its name, with the labels that it gets by its place."""
    labels = {**node.labels, HOST_LABEL: name}
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
    """The CSI drivers of a node, with their limits."""
    drivers = [
        CsiNodeDriver(name=driver, allocatable=CsiNodeAllocatable(count=limit.count))
        for driver, limit in strategy.csi_node_allocatable.items()
    ]
    made = CsiNode(kind="CSINode", spec=CsiNodeSpec(drivers=drivers))
    annotations = {MIGRATED: ",".join(strategy.migrated_plugins)}
    return replace(made, metadata=replace(made.metadata, name=name, annotations=annotations))


def bound_volume(volume: PersistentVolume, pod: Pod) -> PersistentVolume:
    """The pod's volume, bound to the pod's claim, with a disk of its own."""
    name = f"{pod.namespace}-{pod.name}"
    spec = replace(volume.spec, claim_ref=ObjectReference(pod.name, pod.namespace, name))
    if spec.csi is not None:
        spec = replace(spec, csi=replace(spec.csi, volume_handle=name))
    if spec.aws_elastic_block_store is not None:
        disk = replace(spec.aws_elastic_block_store, volume_id=name)
        spec = replace(spec, aws_elastic_block_store=disk)
    metadata = replace(volume.metadata, name=name)
    return replace(volume, metadata=metadata, spec=spec, status=VolumeStatus("Bound"))


def bound_claim(claim: PersistentVolumeClaim, pod: Pod) -> PersistentVolumeClaim:
    """The pod's claim, bound to the pod's volume."""
    volume = f"{pod.namespace}-{pod.name}"
    metadata = replace(claim.metadata, name=pod.name, namespace=pod.namespace, uid=volume)
    spec = replace(claim.spec, volume_name=volume)
    return replace(claim, metadata=metadata, spec=spec, status=VolumeStatus("Bound"))


def claiming(pod: Pod) -> Pod:
    """The pod with a volume: the claim of the same name."""
    volume = Volume(name="vol", persistent_volume_claim=ClaimVolume(pod.name))
    return replace(pod, spec=replace(pod.spec, volumes=[volume]))
