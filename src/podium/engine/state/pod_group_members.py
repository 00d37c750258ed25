"""The pods of each pod group that a scheduler knows: those on nodes, and those without one.

Upstream: pkg/scheduler/backend/cache/podgroupstate.go, Kubernetes v1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.pod import Pod

_NOBODY: Mapping[str, PlacedMember] = {}


class PlacedMember(msgspec.Struct, frozen=True):
    """A pod of a group that is on a node, or assumed to be."""

    resident: Resident
    scheduler_name: str


class PodGroupMembers:
    """Members by the key of their group. Placed pods come and go with the pods of the view."""

    __slots__ = ("_placed", "_waiting")

    def __init__(self) -> None:
        self._placed: dict[str, dict[str, PlacedMember]] = {}
        #: Uids of the pods without a node; a pod that is only assumed to have one is among them.
        self._waiting: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        """Whether a pod of any group is on a node."""
        return bool(self._placed)

    def placed(self, group: str) -> Iterable[PlacedMember]:
        """The pods of a group that have a node, in the order in which they got it."""
        return self._placed.get(group, _NOBODY).values()

    def placed_count(self, group: str) -> int:
        """How many pods of a group have a node."""
        return len(self._placed.get(group, _NOBODY))

    def count(self, group: str) -> int:
        """How many pods of a group are known, with a node or without."""
        placed = self._placed.get(group, _NOBODY)
        waiting = self._waiting.get(group, ())
        return len(placed) + sum(uid not in placed for uid in waiting)

    def place(self, resident: Resident, pod: Pod) -> None:
        """A pod of a group is on a node."""
        member = PlacedMember(resident, pod.spec.scheduler_name)
        self._placed.setdefault(resident.group, {})[resident.uid] = member

    def put_back(self, member: PlacedMember) -> None:
        """A pod that was taken off its node for a trial is on it again."""
        resident = member.resident
        self._placed.setdefault(resident.group, {})[resident.uid] = member

    def leave(self, resident: Resident) -> PlacedMember | None:
        """A pod of a group has left its node."""
        members = self._placed.get(resident.group)
        if members is None:
            return None
        left = members.pop(resident.uid, None)
        if not members:
            del self._placed[resident.group]
        return left

    def expect(self, pod: Pod) -> None:
        """A pod without a node is known; one that names no group is none of its business."""
        if group := pod.group:
            self._waiting.setdefault(group, set()).add(pod.uid)

    def waiting(self) -> dict[str, set[str]]:
        """The uids of the pods without a node, by group; a copy."""
        return {group: set(uids) for group, uids in self._waiting.items()}

    def expect_all(self, waiting: Mapping[str, set[str]]) -> None:
        """These pods without a node are known."""
        for group, uids in waiting.items():
            self._waiting.setdefault(group, set()).update(uids)

    def forget(self, pod: Pod) -> None:
        """A pod without a node is gone, or has got a node."""
        waiting = self._waiting.get(pod.group)
        if waiting is not None:
            waiting.discard(pod.uid)
            if not waiting:
                del self._waiting[pod.group]
