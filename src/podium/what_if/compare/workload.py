"""The pods of a cluster to be placed anew, and those that belong to their nodes.

Pods of DaemonSets and static pods go with their node. All other pods, running or pending, are the
workload: they are placed from scratch, whichever scheduler they name.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.library.pending import pending
from podium.library.simulating import open_simulation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager

    from podium.cluster.simulation import Simulation
    from podium.engine.framework.profile import Profile
    from podium.library.notices import Notify
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: Owners whose pods go with their node.
_FIXED_OWNERS: Final = frozenset({"DaemonSet", "Node"})


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
        owner = pod.metadata.controller()
        if pod.finished or pod.terminating:
            continue
        if owner is not None and owner.kind in _FIXED_OWNERS:
            if node := pod.spec.node_name or _only_node(pod):
                fixed.append(replace(pod, spec=replace(pod.spec, node_name=node)))
        else:
            moving.append(_anew(pod))
    moving.sort(key=lambda pod: pod.key)
    return PackedWorkload(others, tuple(fixed), tuple(moving))


def _only_node(pod: Pod) -> str:
    """The node that the controller of a DaemonSet made the pod for."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = (affinity and affinity.required and affinity.required.node_selector_terms) or ()
    for term in terms:
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def _anew(pod: Pod) -> Pod:
    status = replace(pod.status, nominated_node_name="", phase="", start_time=None)
    metadata = replace(pod.metadata, creation_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)


def open_workload(
    profiles: Sequence[Profile], notify: Notify
) -> AbstractContextManager[Simulation]:
    """A simulation in which the first profile decides about pods of unknown schedulers."""
    first, *others = profiles
    return open_simulation(first, others, notify=notify)
