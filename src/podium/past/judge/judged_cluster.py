"""The cluster as far as a judge has followed it, what Podium decides there, and trials.

A trial changes the cluster to try a state, and is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from podium.cluster.decider import Decider
from podium.past.judge.looked_at import LookedAt, whole
from podium.scheduler.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.replay.replay import Rules
    from podium.scheduler.state.observers import Observer


class JudgedCluster:
    """Decides about pods in the state as it is; a decision moves no cursor."""

    def __init__(
        self, rules: Rules, observers: Sequence[Observer], verification: Verification | None
    ) -> None:
        self._profiles = rules.profiles
        #: The time of the last change that was followed.
        self.now = 0.0
        self.state = ClusterState(rules.profiles, rules.behaviour, lambda: self.now, observers)
        self.decider = Decider(
            self.state.cache,
            whole(rules.profiles),
            clock=lambda: self.now,
            nominations=self.state.queue.nominations,
            verification=verification,
        )
        self.looked_at = LookedAt(self.state.cache, self.decider, rules.profiles)

    def profile(self, pod: Pod) -> Profile:
        """The profile of the scheduler that decides about a pod."""
        return self._profiles[pod.spec.scheduler_name]

    def decided(self, pod: Pod, *, recording: bool = False) -> Decision:
        """What is decided about a pod."""
        return self.looked_at.decided(pod, recording=recording)

    def is_best(self, pod: Pod, node: str) -> bool:
        """Whether a node is one of the best for a pod."""
        return self.looked_at.is_best(pod, node)

    def best_nodes(self, pod: Pod) -> Sequence[str]:
        """The best nodes for a pod."""
        decision = self.decided(pod, recording=True)
        return decision.best or ([decision.node] if decision.node else [])

    def move_on(self, decision: Decision) -> None:
        """Leave the order of nodes and the rule for ties as the decision leaves them."""
        if decision.tied:
            self.decider.ties.skip(decision.tied)
        self.state.cache.advance(decision.consumed, dropped=decision.dropped)

    def place(self, pod: Pod, node: str, decision: Decision | None) -> None:
        """Let a pod count on the node where it really went."""
        reservations = {} if decision is None else self._reservations(pod, node, decision)
        self.state.queue.clear_nomination(pod)
        self.state.cache.assume(pod, node, reservations)

    def _reservations(self, pod: Pod, node: str, decision: Decision) -> Mapping[str, Reservation]:
        """What reserve rules set aside on the node."""
        profile, nodes = self.profile(pod), self.state.cache.columns.nodes
        if decision.node == node:
            return decision.reservations
        row = nodes.row_of.get(node)
        if not profile.reserve_rules or row is None or not nodes.known[row]:
            return {}
        there = self.decider.look(pod, profile, recording=False, order=np.array([row]))
        return there.reservations


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
