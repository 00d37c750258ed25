"""Nodes: the part that scheduling reads."""

from __future__ import annotations

from podium.objects.kinds.meta import Int64, Object, ResourceList, Value


class Taint(Value, frozen=True):
    """A taint; pods that do not tolerate it are kept off the node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Value, frozen=True):
    """Cordon and taints of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeCondition(Value, frozen=True):
    """A condition of a node."""

    type: str = ""
    status: str = ""


class ContainerImage(Value, frozen=True):
    """An image present on the node, under all its names."""

    names: list[str] | None = None
    size_bytes: Int64 = 0


class NodeStatus(Value, frozen=True):
    """Resources, conditions, images and features that a node reports."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: list[NodeCondition] | None = None
    images: list[ContainerImage] | None = None
    declared_features: list[str] | None = None


class Node(Object, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
