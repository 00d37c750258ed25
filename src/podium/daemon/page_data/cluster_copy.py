"""The cluster taken out of the columns, so that it can be played again elsewhere.

Taking it is quick and happens between two decisions; what is done with it may take its time in
another thread, since nothing in it changes any more.
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

#: Pods of these owners are put on their node by it, not by a scheduler.
_TIED_DOWN = frozenset({"DaemonSet", "Node"})


@dataclass(frozen=True, slots=True)
class Placed:
    """A placed pod: one of its class, its own names, and its node."""

    sample: Pod
    key: str
    uid: str
    node: str
    #: Seconds since 1970; infinity when it has not started.
    started: float

    def pod(self, node: str = "") -> Pod:
        """The pod, waiting or on a node."""
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
class Scene:
    """What stays as it is, and the pods to be placed again, in order."""

    #: Everything but pods.
    stage: Objects
    fixed: list[Placed]
    replayed: list[Placed]
    waiting: list[Pod]
    #: How many pods could have been placed again, but are too many.
    left_out: int = 0

    def objects(self) -> Objects:
        """The cluster before the first of the pods was placed."""
        objects = self.stage.copied()
        objects.pods = [each.pod(each.node) for each in self.fixed]
        return objects

    def pods(self) -> list[Pod]:
        """The pods to place, in order."""
        return [*(each.pod() for each in self.replayed), *self.waiting]


def take(
    view: View, bound: Mapping[str, int], waiting: Sequence[Pod], *, most: int, foreign: set[str]
) -> Scene:
    """The scene: pods whose binding was seen in that order, those before by their start.

    Pods of other schedulers (*foreign* uids) and of daemons stay where they are, and so do all
    but the last *most*.
    """
    fixed: list[Placed] = []
    moving: list[tuple[tuple[int, float, str], Placed]] = []
    for row in [*view.order.tolist(), *view.ghosts_by_name()]:
        name = view.names[row]
        for resident in view.residents[row]:
            placed = Placed(resident.cls.sample, resident.key, resident.uid, name, resident.started)
            if _stays(resident, foreign) or not view.known[row]:
                fixed.append(placed)
            else:
                order = bound.get(resident.uid, -1)
                moving.append(((order, resident.started, resident.key), placed))
    moving.sort(key=lambda each: each[0])
    pods = [placed for _, placed in moving]
    cut = max(0, len(pods) - most)
    fixed += pods[:cut]
    return Scene(_stage(view), fixed, pods[cut:], list(waiting), cut)


def written_time(seconds: float) -> str | None:
    """A time as objects have it; None for one that never was."""
    if not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _stays(resident: Resident, foreign: set[str]) -> bool:
    owner = resident.cls.owner
    tied_down = owner is not None and owner.kind in _TIED_DOWN
    return tied_down or resident.terminating or resident.uid in foreign


def _stage(view: View) -> Objects:
    nodes = (view.nodes[row] for row in view.order.tolist())
    found = Objects({kind: list(shelf) for kind, shelf in view.catalog.shelves()})
    found.nodes = [node for node in nodes if node is not None]
    return found
