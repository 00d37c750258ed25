"""Nodes, and the reports of kubelets that repeat most of the version before.

Most of the text of a node is the list of its images. Where that is the same text as in the version
before, the decoded list is taken over; it is decoded only where it has changed.
"""

from __future__ import annotations

from typing import Final

import msgspec

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


#: So many different images are kept decoded; beyond that they are decoded anew.
_MOST_IMAGES: Final = 1 << 14


class _Status(Value, frozen=True):
    """The fields of `NodeStatus`, with the images as text."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: list[NodeCondition] | None = None
    images: msgspec.Raw = msgspec.Raw(b"null")
    declared_features: list[str] | None = None


class _Report(Object, frozen=True):
    """The fields of `Node`, with the images as text."""

    spec: NodeSpec = NodeSpec()
    status: _Status = _Status()


_report = msgspec.json.Decoder(_Report)
_node = msgspec.json.Decoder(Node)
_image_texts: msgspec.json.Decoder[list[msgspec.Raw] | None] = msgspec.json.Decoder(
    list[msgspec.Raw] | None
)
_image = msgspec.json.Decoder(ContainerImage)


class NodeReports:
    """Decodes versions of nodes, and remembers the images of the last version of each node."""

    def __init__(self) -> None:
        #: Name of a node -> the text of its images, and the images.
        self._known: dict[str, tuple[msgspec.Raw, list[ContainerImage] | None]] = {}
        #: The text of an image -> the image, which many nodes have.
        self._images: dict[bytes, ContainerImage] = {}

    def decode(self, text: bytes | memoryview) -> Node:
        """The node that a text describes, as the decoder of nodes gives it."""
        try:
            report = _report.decode(text)
            images = self._images_of(report)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _node.decode(text)  # which says what is wrong with it
        status = report.status
        return Node(
            report.api_version,
            report.kind,
            report.metadata,
            report.spec,
            NodeStatus(
                status.capacity,
                status.allocatable,
                status.conditions,
                images,
                status.declared_features,
            ),
        )

    def forget(self, node: Node) -> None:
        """Forget a node that was deleted."""
        self._known.pop(node.name, None)

    def clear(self) -> None:
        """Forget all nodes."""
        self._known.clear()
        self._images.clear()

    def _images_of(self, report: _Report) -> list[ContainerImage] | None:
        name, text = report.metadata.name, report.status.images
        known = self._known.get(name)
        if known is not None and known[0] == text:
            return known[1]
        found = _image_texts.decode(text)
        images = None if found is None else [self._shared(bytes(each)) for each in found]
        self._known[name] = text.copy(), images
        return images

    def _shared(self, text: bytes) -> ContainerImage:
        """The image that a text describes, the same for all nodes that have it."""
        found = self._images.get(text)
        if found is None:
            if len(self._images) >= _MOST_IMAGES:
                self._images.clear()
            found = self._images[text] = _image.decode(text)
        return found
