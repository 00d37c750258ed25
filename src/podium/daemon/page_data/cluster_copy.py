"""A copy of the cluster, on which pods can be placed again without touching the scheduler.

Copying is quick and happens between two decisions. The copy never changes, so it can be used in
another thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.objects.reading.collection import Objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: The owners whose pods have a fixed node.
_FIXED_OWNERS = frozenset({"DaemonSet", "Node"})


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A placed pod: a sample of its class, its own names, and its node."""

    sample: Pod
    key: str
    uid: str
    node: str
    #: Seconds since 1970; infinity when it has not started.
    started: float

    def pod(self, node: str = "") -> Pod:
        """The pod, pending or on a node."""
        namespace, _, name = self.key.partition("/")
        metadata = replace(
            self.sample.metadata,
            name=name,
            namespace=namespace,
            uid=self.uid,
            deletion_timestamp=None,
        )
        spec = replace(self.sample.spec, node_name=node)
        status = replace(
            self.sample.status,
            nominated_node_name="",
            phase="",
            start_time=written_time(self.started),
        )
        return replace(self.sample, metadata=metadata, spec=spec, status=status)


@dataclass(slots=True)
class ClusterCopy:
    """All objects, divided into those that stay and the pods to be placed again, in order."""

    #: Everything but pods.
    others: Objects
    fixed: list[PlacedPod]
    replayed: list[PlacedPod]
    waiting: list[Pod]
    #: How many pods stay on their node only because there are too many to place again.
    left_out: int = 0

    def objects(self) -> Objects:
        """The cluster before the first of the pods was placed."""
        objects = self.others.copied()
        objects.pods = [each.pod(each.node) for each in self.fixed]
        return objects

    def pods(self) -> list[Pod]:
        """The pods to place, in order."""
        return [*(each.pod() for each in self.replayed), *self.waiting]


def copy_cluster(
    view: View, bound: Mapping[str, int], waiting: Sequence[Pod], *, most: int, foreign: set[str]
) -> ClusterCopy:
    """Copy the cluster; pods are replayed in the order of *bound*, after others by start time.

    Pods of other schedulers (*foreign* uids) and of DaemonSets stay where they are, and so do all
    but the last *most*.
    """
    fixed: list[PlacedPod] = []
    moving: list[tuple[tuple[int, float, str], PlacedPod]] = []
    for row in [*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()]:
        name = view.nodes.names[row]
        for resident in view.pods.residents[row]:
            placed = PlacedPod(
                resident.cls.sample, resident.key, resident.uid, name, resident.started
            )
            if _stays(resident, foreign) or not view.nodes.known[row]:
                fixed.append(placed)
            else:
                order = bound.get(resident.uid, -1)
                moving.append(((order, resident.started, resident.key), placed))
    moving.sort(key=lambda each: each[0])
    pods = [placed for _, placed in moving]
    cut = max(0, len(pods) - most)
    fixed += pods[:cut]
    return ClusterCopy(_others(view), fixed, pods[cut:], list(waiting), cut)


def all_objects(view: View, bound: Mapping[str, int], waiting: Sequence[Pod]) -> Objects:
    """A copy of the cluster whose pods are to be placed anew, in the order in which they came.

    Pods on nodes come in the order of *bound*, after others by start time, and then those that
    wait. Pods that are being deleted are left out.
    """
    found: list[tuple[tuple[int, float, str], PlacedPod]] = []
    for row in [*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()]:
        for resident in view.pods.residents[row]:
            if not resident.terminating:
                order = (bound.get(resident.uid, -1), resident.started, resident.key)
                node = view.nodes.names[row]
                sample = resident.cls.sample
                placed = PlacedPod(sample, resident.key, resident.uid, node, resident.started)
                found.append((order, placed))
    found.sort(key=lambda each: each[0])
    objects = _others(view)
    # The time of creation is that of the sample; without one, the order of the list counts.
    pods = [placed.pod(placed.node) for _, placed in found]
    timeless = [replace(p, metadata=replace(p.metadata, creation_timestamp=None)) for p in pods]
    objects.pods = [*timeless, *waiting]
    return objects


def written_time(seconds: float) -> str | None:
    """A time in the form of Kubernetes objects; None for an infinite one."""
    if not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _stays(resident: Resident, foreign: set[str]) -> bool:
    owner = resident.cls.owner
    has_fixed_node = owner is not None and owner.kind in _FIXED_OWNERS
    return has_fixed_node or resident.terminating or resident.uid in foreign


def _others(view: View) -> Objects:
    nodes = (view.nodes.objects[row] for row in view.nodes.order.tolist())
    found = Objects({kind: list(shelf) for kind, shelf in view.catalog.shelves()})
    found.nodes = [node for node in nodes if node is not None]
    return found
