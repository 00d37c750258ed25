"""Cell compaction: on how few of its nodes a cluster's whole workload fits.

The measure of the Borg papers. Nodes are taken away until the workload, placed from scratch, no
longer fits; the pods arrive in a random order, and so do the nodes leave, both by a seed. The order
of two nodes depends on their names and the seed alone, so a cluster with further nodes that leave
first needs as many nodes as before, and never more.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Final

from podium.library.notices import Notify, log_warning
from podium.objects.quantity import milli, value
from podium.what_if.compare.workload import open_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.node import Node
    from podium.what_if.compare.workload import PackedWorkload

#: In a pool of at most so many nodes every number is tried; in a larger one the search bisects.
SCANNED: Final = 128


@dataclass(slots=True)
class Compaction:
    """The search for the number of nodes, for one configuration and one seed."""

    workload: PackedWorkload
    profiles: Sequence[Profile]
    seed: int
    notify: Notify = log_warning
    scanned: int = SCANNED
    #: Numbers of nodes that were tried, and whether the workload fits on them.
    tried: dict[int, bool] = field(default_factory=dict)

    def needed(self) -> int | None:
        """The smallest number of nodes that the workload fits on; None if it does not fit."""
        nodes = self.order()
        if not self.workload.pods:
            return 0
        if len(nodes) <= self.scanned:
            return next((n for n in range(1, len(nodes) + 1) if self.fits(nodes[:n])), None)
        return self._bisected(nodes)

    def _bisected(self, nodes: Sequence[Node]) -> int | None:
        """Double the number until the workload fits, then bisect."""
        low, high = 0, min(self._at_least(nodes), len(nodes))
        while not self.fits(nodes[:high]):
            if high == len(nodes):
                return None
            low, high = high, min(2 * high - low + 1, len(nodes))
        while high - low > 1:
            middle = (low + high) // 2
            if self.fits(nodes[:middle]):
                high = middle
            else:
                low = middle
        return high

    def _at_least(self, nodes: Sequence[Node]) -> int:
        """About where to begin: where the cpu and the memory of the nodes are enough."""
        wanted = [0, 0]
        for pod in self.workload.pods:
            for container in pod.spec.containers or ():
                requests = (container.resources and container.resources.requests) or {}
                wanted[0] += milli(requests.get("cpu", 0))
                wanted[1] += value(requests.get("memory", 0))
        there = [0, 0]
        for number, node in enumerate(nodes, 1):
            allocatable = node.status.allocatable or {}
            there[0] += milli(allocatable.get("cpu", 0))
            there[1] += value(allocatable.get("memory", 0))
            if there[0] >= wanted[0] and there[1] >= wanted[1]:
                return number
        return len(nodes)

    def order(self) -> list[Node]:
        """The nodes that could be kept; the last one leaves first. Cordoned nodes are none."""
        pool = [node for node in self.workload.objects.nodes if not node.spec.unschedulable]
        return sorted(pool, key=lambda node: _position(self.seed, node.name))

    def fits(self, nodes: Sequence[Node]) -> bool:
        """Whether the whole workload finds a place on these nodes, without evictions."""
        found = self.tried.get(len(nodes))
        if found is None:
            found = self.tried[len(nodes)] = not any(self._left_over(nodes))
        return found

    def _left_over(self, nodes: Sequence[Node]) -> Iterator[bool]:
        """For each pod in turn, whether it finds no place."""
        profiles = [replaced(profile, post_filters=()) for profile in self.profiles]
        by_priority = profiles[0].by_priority
        with open_workload(profiles, self.notify) as simulation:
            simulation.load(self.workload.on(nodes))
            for pod in self.workload.arriving(self.seed, by_priority=by_priority):
                decision = simulation.attempt(pod)
                yield decision.node is None
                simulation.place(pod, decision)


def _position(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
