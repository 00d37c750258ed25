"""The workload of a cluster placed anew, and on how few of its nodes it fits (cell compaction).

Pods of DaemonSets and static pods go with their node. All other pods, running or pending, are the
workload: they are placed from scratch, whichever scheduler they name. Compaction is the measure of
the Borg papers: nodes are taken away until the workload no longer fits; the pods arrive in a random
order, and so do the nodes leave, both by a seed. The order of two nodes depends on their names and
the seed alone. So a cluster with further nodes, which leave first, needs as many nodes as before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.library.notices import Notify, log_warning
from podium.library.pending_pods import pending
from podium.library.simulations import open_simulation
from podium.library.workloads import anew, is_active, is_owned_by_node, requested
from podium.objects.quantity import milli, value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


@dataclass(frozen=True, slots=True)
class PackedWorkload:
    """The cluster without pods, the pods that go with their nodes, and those to be placed."""

    #: Everything but pods.
    objects: Objects
    fixed: tuple[Pod, ...]
    #: In the order of their names.
    pods: tuple[Pod, ...]

    def without(self, keys: Collection[str]) -> PackedWorkload:
        """The same without some of the pods to be placed."""
        kept = tuple(pod for pod in self.pods if pod.key not in keys)
        return PackedWorkload(self.objects, self.fixed, kept)

    def on(self, nodes: Sequence[Node]) -> Objects:
        """The cluster with these nodes only, and the pods that go with them."""
        names = {node.name for node in nodes}
        found = self.objects.copied()
        found.nodes = list(nodes)
        found.pods = [pod for pod in self.fixed if pod.spec.node_name in names]
        return found

    def queued(self, *, by_priority: bool) -> list[Pod]:
        """The pods in the order of the scheduling queue."""
        found = self.objects.copied()
        found.pods = list(self.pods)
        schedulers = {pod.spec.scheduler_name for pod in self.pods}
        return pending(found, schedulers, by_priority=by_priority)

    def arriving(self, seed: int, *, by_priority: bool) -> list[Pod]:
        """The pods in a random order of arrival, the same for the same seed."""
        found = sorted(self.pods, key=lambda pod: pod.key)
        Random(seed).shuffle(found)  # noqa: S311  a simulation, not a secret
        if by_priority:
            found.sort(key=lambda pod: -pod.priority)
        return found


def workload_of(objects: Objects) -> PackedWorkload:
    """The workload of a cluster; pods that have finished or are being deleted are left out.

    Nodes and pods are in the order of their names, and pods have no time of creation: placed from
    scratch, the same cluster has the same outcome wherever it is read from.
    """
    others = objects.copied()
    others.pods = []
    others.nodes = sorted(objects.nodes, key=lambda node: node.name)
    fixed: list[Pod] = []
    moving: list[Pod] = []
    for pod in objects.pods:
        if not is_active(pod):
            continue
        if is_owned_by_node(pod):
            if node := pod.spec.node_name or _only_node(pod):
                fixed.append(replace(pod, spec=replace(pod.spec, node_name=node)))
        else:
            metadata = replace(pod.metadata, creation_timestamp=None)
            moving.append(replace(anew(pod), metadata=metadata))
    moving.sort(key=lambda pod: pod.key)
    return PackedWorkload(others, tuple(fixed), tuple(moving))


def _only_node(pod: Pod) -> str:
    """The node that the controller of a DaemonSet made the pod for."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = (affinity and affinity.required and affinity.required.node_selector_terms) or ()
    for term in terms:
        for each in term.match_fields or ():
            if each.key == "metadata.name" and each.values:
                return each.values[0]
    return ""


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
        wanted, there = requested(self.workload.pods), [0, 0]
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
        with open_simulation(profiles, notify=self.notify) as simulation:
            simulation.load(self.workload.on(nodes))
            for pod in self.workload.arriving(self.seed, by_priority=by_priority):
                decision = simulation.attempt(pod)
                yield decision.node is None
                simulation.place(pod, decision)


def _position(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
