"""A copy of the cluster, on which pods can be placed again without touching the scheduler.

A cluster is copied some nodes at a time, and decisions are made between them: each node is copied
with all its pods of one moment. The copy never changes, so it can be used in another thread.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.objects.reading.collection import Objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: When a pod was bound, by its place among those that were, its start and its name.
_Order = tuple[int, float, str]
#: The owners whose pods have a fixed node.
_FIXED_OWNERS = frozenset({"DaemonSet", "Node"})


@dataclass(frozen=True, slots=True)
class CopiedPod:
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
class LiveCopy:
    """All objects, divided into those that stay and the pods to be placed again, in order."""

    #: Everything but pods.
    others: Objects
    fixed: list[CopiedPod]
    replayed: list[CopiedPod]
    waiting: list[Pod]
    #: How many pods stay on their node only because there are too many to place again.
    left_out: int = 0
    #: The time of the last decision before it was copied, in seconds since 1970.
    decided_at: float = 0.0

    def objects(self) -> Objects:
        """The cluster before the first of the pods was placed."""
        objects = self.others.copied()
        objects.pods = [each.pod(each.node) for each in self.fixed]
        return objects

    def take(self, key: str) -> CopiedPod | None:
        """Remove a placed pod that stays on its node; the pod, None if there is none."""
        found = next((each for each in self.fixed if each.key == key), None)
        if found is not None:
            self.fixed.remove(found)
        return found

    def pods(self) -> list[Pod]:
        """The pods to place, in order."""
        return [*(each.pod() for each in self.replayed), *self.waiting]


async def copy_cluster(
    view: View,
    bound: Mapping[str, int] | None = None,
    waiting: Sequence[Pod] = (),
    *,
    most: int = 0,
    foreign: Collection[str] = (),
    rows_at_once: int = 16,
) -> LiveCopy:
    """Copy the cluster; pods are replayed in the order of *bound*, after others by start time.

    Pods of other schedulers (*foreign* uids) and of DaemonSets stay where they are, and so do all
    but the last *most*. Other tasks run after every *rows_at_once* nodes.
    """
    bound = {} if bound is None else bound
    found: list[tuple[_Order | None, CopiedPod]] = []
    rows = [*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()]
    names = [view.nodes.names[row] for row in rows]
    others = _others(view)
    for place, (row, name) in enumerate(zip(rows, names, strict=True), 1):
        if view.nodes.names[row] == name:  # else the node is gone since
            found += _pods_on(view, row, bound, foreign)
        if place % rows_at_once == 0:
            await asyncio.sleep(0)
    copied = await asyncio.to_thread(_arranged, others, found, list(waiting), most)
    copied.decided_at = view.decided_at
    return copied


def _pods_on(
    view: View, row: int, bound: Mapping[str, int], foreign: Collection[str]
) -> Iterator[tuple[_Order | None, CopiedPod]]:
    """The pods on a node, each with its place in the order; None for one that stays there."""
    name, known = view.nodes.names[row], view.nodes.known[row]
    for resident in view.pods.residents[row]:
        placed = CopiedPod(resident.cls.sample, resident.key, resident.uid, name, resident.started)
        if _stays(resident, foreign) or not known:
            yield None, placed
        else:
            yield (bound.get(resident.uid, -1), resident.started, resident.key), placed


def _arranged(
    others: Objects,
    found: Sequence[tuple[_Order | None, CopiedPod]],
    waiting: list[Pod],
    most: int,
) -> LiveCopy:
    """The copy, with the pods that are replayed in their order."""
    if not most:
        pods = [placed for _, placed in found]
        moved = sum(order is not None for order, _ in found)
        return LiveCopy(others, pods, [], waiting, moved)
    fixed = [placed for order, placed in found if order is None]
    moving = [(order, placed) for order, placed in found if order is not None]
    moving.sort(key=lambda each: each[0])
    pods = [placed for _, placed in moving]
    cut = max(0, len(pods) - most)
    return LiveCopy(others, fixed + pods[:cut], pods[cut:], waiting, cut)


def all_objects(view: View, pods: Iterable[Pod]) -> Objects:
    """A copy of the cluster whose *pods* are to be placed anew.

    Pods that have finished or are being deleted are left out. A pod that is being bound has its
    node already.
    """
    objects = _others(view)
    for pod in pods:
        if pod.finished or pod.terminating:
            continue
        resident = view.pods.by_uid.get(pod.uid)
        node = "" if resident is None else view.nodes.names[resident.row]
        placed = pod if node == pod.spec.node_name else _on_node(pod, node)
        objects.pods.append(placed)
    return objects


def _on_node(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def written_time(seconds: float) -> str | None:
    """A time in the form of Kubernetes objects; None for an infinite one."""
    if not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _stays(resident: Resident, foreign: Collection[str]) -> bool:
    owner = resident.cls.owner
    has_fixed_node = owner is not None and owner.kind in _FIXED_OWNERS
    return has_fixed_node or resident.terminating or resident.uid in foreign


def _others(view: View) -> Objects:
    nodes = (view.nodes.objects[row] for row in view.nodes.order.tolist())
    found = Objects({kind: list(shelf) for kind, shelf in view.catalog.shelves()})
    found.nodes = [node for node in nodes if node is not None]
    return found
