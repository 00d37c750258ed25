"""The changes of a cluster that a judge knows of and has not followed yet."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, cast

from podium.cluster.queue.entities import is_unschedulable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange


class Ahead:
    """Changes in their order, and the versions of each pod among them."""

    def __init__(self) -> None:
        self._changes: deque[ObjectChange] = deque()
        #: By uid, with their times; None where the pod is deleted.
        self._versions: defaultdict[str, deque[tuple[float, Pod | None]]] = defaultdict(deque)

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[ObjectChange]:
        return iter(self._changes)

    @property
    def first(self) -> ObjectChange:
        """The change that is followed next."""
        return self._changes[0]

    @property
    def until(self) -> float:
        """The time of the last change; 0 if there is none."""
        return self._changes[-1].time if self._changes else 0.0

    def feed(self, change: ObjectChange) -> None:
        """Add a change."""
        self._changes.append(change)
        if change.kind == "Pod":
            new = cast("Pod | None", change.new)
            self._versions[_uid(change)].append((change.time, new))

    def follow(self) -> None:
        """Take the first change away."""
        change = self._changes.popleft()
        if change.kind == "Pod":
            versions = self._versions[_uid(change)]
            versions.popleft()
            if not versions:
                del self._versions[_uid(change)]

    def has(self, uid: str) -> bool:
        """Whether there is a change of a pod."""
        return uid in self._versions

    def outcome(self, uid: str) -> tuple[str | None, bool, float]:
        """The node that a pod gets, or whether it is deleted, and when."""
        for at, version in self._versions.get(uid, ()):
            if version is None:
                return None, True, at
            if version.spec.node_name:
                return version.spec.node_name, False, at
        return None, False, 0.0

    def failure(self, pod: Pod) -> Pod | None:
        """The version that reports a failed attempt, if one comes before the pod is bound."""
        for _, version in self._versions.get(pod.uid, ()):
            if version is None or version.spec.node_name:
                return None
            if reports_failure(pod, version):
                return version
        return None

    def signs(self, uids: Collection[str]) -> dict[str, int]:
        """Where the outcome of an attempt is first seen, by uid."""
        found: dict[str, int] = {}
        for place, change in enumerate(self._changes):
            new = cast("Pod | None", change.new)
            if change.kind == "Pod" and new and new.uid in uids and shows_outcome(new):
                found.setdefault(new.uid, place)
        return found


def _uid(change: ObjectChange) -> str:
    return cast("Pod", change.new if change.new is not None else change.old).uid


def shows_outcome(pod: Pod) -> bool:
    """Whether a pod is bound, or reported as unschedulable."""
    return bool(pod.spec.node_name) or is_unschedulable(pod)


def reports_failure(old: Pod, new: Pod) -> bool:
    """Whether a change of a pod shows that an attempt found no node."""
    if new.spec.node_name or not is_unschedulable(new):
        return False
    nominated = new.status.nominated_node_name
    return not is_unschedulable(old) or (
        bool(nominated) and nominated != old.status.nominated_node_name
    )
