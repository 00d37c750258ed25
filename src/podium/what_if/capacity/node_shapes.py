"""Nodes that could be added: what a new node like an existing one would be.

A new node is healthy and empty except for copies of the DaemonSet pods of the node that it is like;
it has the same devices, all of them free.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.library.lookup import check_node
from podium.library.reading import load
from podium.objects.kinds.node import Node, NodeCondition, NodeSpec
from podium.objects.kinds.registry import RESOURCE_SLICE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from podium.cluster.simulation import Simulation
    from podium.objects.kinds.devices import ResourceSlice
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: Taints that the node controllers add; a new node has none of them.
_CONTROLLER_TAINTS: Final = "node.kubernetes.io/"
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A kind of node that could be added: a node to copy, and the DaemonSet pods on it."""

    node: Node
    daemons: tuple[Pod, ...] = ()
    #: The devices that drivers publish on it.
    slices: tuple[ResourceSlice, ...] = ()
    #: How many nodes of the cluster have this shape.
    count: int = 1

    @property
    def name(self) -> str:
        """The name of the node that is copied."""
        return self.node.name

    def built(self, taken: Iterable[str]) -> tuple[Node, list[Pod]]:
        """A new node of this shape with a name that is not *taken*, and the pods on it."""
        used, number = set(taken), 1
        while (name := f"{self.node.name}-new-{number}") in used:
            number += 1
        return _renamed(self.node, name), [_moved(pod, name) for pod in self.daemons]


def shapes_of(objects: Objects) -> list[NodeShape]:
    """The shapes of the cluster's nodes, the most common first.

    Nodes have the same shape if allocatable resources, labels, taints and devices are equal, apart
    from labels that contain the name of the node.
    """
    groups: dict[bytes, list[Node]] = {}
    slices = _slices(objects)
    for node in objects.nodes:
        fresh = _renamed(node, "")
        devices = [(each.spec.driver, each.spec.devices) for each in slices.get(node.name, ())]
        key = (fresh.status.allocatable, fresh.metadata.labels, fresh.spec.taints, devices)
        groups.setdefault(_encode(key), []).append(node)
    ordered = sorted(groups.values(), key=lambda group: -len(group))
    daemons = _daemons(objects)
    return [
        NodeShape(
            group[0],
            tuple(daemons.get(group[0].name, ())),
            tuple(slices.get(group[0].name, ())),
            len(group),
        )
        for group in ordered
    ]


def shape_named(objects: Objects, name: str) -> NodeShape:
    """The shape of the node of this name, or of the only node in the file of this name."""
    if not any(node.name == name for node in objects.nodes) and Path(name).exists():
        found = load([name]).nodes
        if len(found) != 1:
            what = f"holds {len(found)} nodes"
            raise InputError(what, where=name, hint="a shape is a file with one node")
        return NodeShape(found[0], count=0)
    check_node(objects, name)
    node = next(node for node in objects.nodes if node.name == name)
    slices = tuple(_slices(objects).get(name, ()))
    return NodeShape(node, tuple(_daemons(objects).get(name, ())), slices)


def add_node(simulation: Simulation, shape: NodeShape) -> tuple[Node, list[Pod]]:
    """Add a new node of this shape, with its pods, to a simulation."""
    known = simulation.cache.columns.nodes.row_of
    node, pods = shape.built(known)
    simulation.cache.put_node(node)
    for each in copied_slices(shape.slices, node.name):
        simulation.cache.columns.catalog.resource_slices.put(each)
    for pod in pods:
        simulation.cache.add_pod(pod)
    return node, pods


def drop_node(simulation: Simulation, node: Node, pods: Sequence[Pod]) -> None:
    """Undo `add_node`."""
    for pod in pods:
        simulation.cache.remove_pod(pod)
    slices = simulation.cache.columns.catalog.resource_slices
    for each in [each for each in slices if each.spec.node_name == node.name]:
        slices.drop(each)
    simulation.cache.drop_node(node)


def daemons_for(objects: Objects, like: str, name: str) -> list[Pod]:
    """The pods of DaemonSets that a new node *name* runs, as the node that it is *like* does."""
    return [_moved(pod, name) for pod in _daemons(objects).get(like, ())]


def slices_for(objects: Objects, like: str, name: str) -> list[ResourceSlice]:
    """The devices of a new node *name*, as those of the node that it is *like*."""
    return copied_slices(_slices(objects).get(like, ()), name)


def copied_slices(slices: Iterable[ResourceSlice], name: str) -> list[ResourceSlice]:
    """Copies of the slices of one node for another node."""
    found = []
    for each in slices:
        pool = replace(each.spec.pool, name=f"{each.spec.pool.name}-{name}")
        metadata = replace(each.metadata, name=f"{each.name}-{name}", uid=f"{each.name}-{name}")
        spec = replace(each.spec, node_name=name, pool=pool)
        found.append(replace(each, metadata=metadata, spec=spec))
    return found


def _slices(objects: Objects) -> dict[str, list[ResourceSlice]]:
    """The slices with devices of one node, by that node."""
    found: dict[str, list[ResourceSlice]] = {}
    for each in objects.of(RESOURCE_SLICE):
        if each.spec.node_name:
            found.setdefault(each.spec.node_name, []).append(each)
    return found


def _daemons(objects: Objects) -> dict[str, list[Pod]]:
    """The pods of DaemonSets, by their node."""
    found: dict[str, list[Pod]] = {}
    for pod in objects.pods:
        owner = pod.metadata.controller()
        if owner is not None and owner.kind == "DaemonSet" and not pod.finished:
            found.setdefault(pod.spec.node_name, []).append(pod)
    found.pop("", None)
    return found


def _renamed(node: Node, name: str) -> Node:
    """A healthy copy of the node under another name."""
    labels = {
        key: name if value == node.name else value
        for key, value in (node.metadata.labels or {}).items()
    }
    metadata = replace(
        node.metadata,
        name=name,
        uid=name,
        labels=labels if node.metadata.labels is not None else None,
    )
    taints = [t for t in node.spec.taints or () if not t.key.startswith(_CONTROLLER_TAINTS)]
    conditions = node.status.conditions and [NodeCondition("Ready", "True")]
    status = replace(node.status, conditions=conditions, images=None)
    return replace(node, metadata=metadata, spec=NodeSpec(taints=taints or None), status=status)


def _moved(pod: Pod, node: str) -> Pod:
    """A copy of a DaemonSet pod for another node."""
    name = f"{pod.name}-{node}"
    metadata = replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node))
