"""Changes of the judged cluster that are made to try a state, and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.judge.judged_cluster import JudgedCluster


class Trial:
    """Changes of a judged cluster, which are taken back in reverse order."""

    def __init__(self, cluster: JudgedCluster) -> None:
        self._decider, self._cache = cluster.decider, cluster.state.cache
        self._columns = self._cache.columns
        self._undo: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._undo)

    def back(self, to: int = 0) -> None:
        """Take back all changes but the first *to*."""
        while len(self._undo) > to:
            act, *arguments = self._undo.pop()
            act(*arguments)

    def _later(self, act: Callable[..., object], *arguments: object) -> None:
        """Take back the last change by this act."""
        self._undo.append((act, *arguments))

    def node_of(self, pod: Pod) -> str | None:
        """The node that a pod counts on."""
        resident = self._columns.pods.by_uid.get(pod.uid)
        return None if resident is None else self._columns.nodes.names[resident.row]

    def remove(self, pods: Iterable[Pod]) -> None:
        """Let some pods count on no node."""
        for pod in pods:
            node = self.node_of(pod)
            if node is not None:
                self._columns.remove_pod(pod.uid)
                self._later(self._columns.add_pod, pod, node)

    def add(self, pod: Pod, node: str | None) -> None:
        """Let a pod count on a node, unless it counts on one."""
        if node is not None and self.node_of(pod) is None:
            self._columns.add_pod(pod, node)
            self._later(self._columns.remove_pod, pod.uid)

    def begin_at(self, start: int) -> None:
        """Let the search begin at a place in the list of nodes."""
        self._later(setattr, self._cache, "start", self._cache.start)
        self._cache.start = start

    def end_nominations(self, uids: Collection[str]) -> None:
        """Let some pods be nominated to no node."""
        if uids:
            self._decider.count_nominated()
            pods = self._columns.pods
            self._later(setattr, pods, "nominated", pods.nominated)
            pods.nominated = {
                node: [each for each in some if each.uid not in uids]
                for node, some in pods.nominated.items()
            }

    def undo(self, changes: Iterable[ObjectChange]) -> None:
        """Take back some changes of the cluster, the last of them first."""
        for change in changes:
            self._exchange(change, change.new, change.old)

    def redo(self, change: ObjectChange) -> None:
        """Make a change of the cluster that was undone."""
        self._exchange(change, change.old, change.new)

    def _exchange(self, change: ObjectChange, now: object, then: object) -> None:
        if self._put(change, now, then):
            self._later(self._put, change, then, now)

    def _put(self, change: ObjectChange, now: object, then: object) -> bool:
        """Put one version of a node or a placed pod into the place of another one."""
        cache, columns = self._cache, self._columns
        if change.kind == "Node":
            if then is not None:
                cache.put_node(cast("Node", then))
            else:
                cache.drop_node(cast("Node", now))
            return True
        before, after = cast("Pod | None", now), cast("Pod | None", then)
        if before is not None and before.spec.node_name:
            if columns.pods.by_uid.get(before.uid) is None or cache.is_assumed(before.uid):
                return False
            columns.remove_pod(before.uid)
        if after is not None and after.spec.node_name:
            if columns.pods.by_uid.get(after.uid) is not None:
                return False
            columns.add_pod(after)
        return True
