"""A trace: the nodes of a cluster, and its pods with the times at which they arrive and leave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from podium.objects.reading.collection import Objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod of a trace; times are seconds since the trace began."""

    pod: Pod
    #: When it is created.
    arrives: float = 0.0
    #: For how long it runs once it is placed; None: it never ends by itself.
    seconds: float | None = None
    #: When it is deleted, wherever it is then; None: never.
    leaves: float | None = None


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of a trace; times are seconds since the trace began."""

    node: Node
    #: When it joins the cluster.
    arrives: float = 0.0
    #: When it is deleted; None: never.
    leaves: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Nodes and pods, each in the order of arrival."""

    name: str
    nodes: tuple[TraceNode, ...] = field(repr=False)
    pods: tuple[TracePod, ...] = field(repr=False)
    #: Everything else: pods that run from the beginning, and objects that rules look up.
    others: Objects = field(default_factory=Objects, repr=False)
    #: When the trace began, in seconds since 1970.
    start: float = 0.0

    def with_order(self, nodes: Iterable[TraceNode], pods: Iterable[TracePod]) -> Trace:
        """The same trace with these nodes and pods, in this order."""
        return replace(self, nodes=tuple(nodes), pods=tuple(pods))
