"""The cluster as far as a judge has followed it, and what Podium decides there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.cluster.decider import Decider
from podium.past.judge.looked_at import LookedAt, whole
from podium.scheduler.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.pod import Pod
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
