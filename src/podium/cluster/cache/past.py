"""What decisions depend on besides the present nodes and pods, as plain values.

kube-scheduler keeps some of the past, and so does the cache: see `columns`. A cache that is filled
with the same nodes, in their order, and the same pods, in the order of each node, and is given the
same past, decides like the first one.
"""

from __future__ import annotations

import msgspec

from podium.cluster.cache.node_tree import TreePosition

#: Image -> its size as it was first reported.
ImageSizes = dict[str, int]
#: Node -> image -> how many nodes had it at the last update of the node.
ImageCounts = dict[str, dict[str, int]]
#: Node -> its pressures.
Pressures = dict[str, list[str]]
#: Node -> ip, protocol and number of the host ports in use.
Ports = dict[str, list[tuple[str, str, int]]]


class Past(msgspec.Struct, frozen=True, array_like=True):
    """The past of a cache."""

    #: Where the next pod begins in the list of nodes.
    start: int
    tree: TreePosition
    image_sizes: ImageSizes
    image_counts: ImageCounts
    pressures: Pressures
    ports: Ports
