"""The state of a scheduler that is followed, and decides nothing itself.

What was decided, and when, is in the history: no pod waits in the queue, and no event wakes one.
Without that work a replay reaches a moment in two thirds of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.scheduler.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.cluster.wakeups.wakeups import ClusterEvent
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.behaviour import Behaviour


class FollowedState(ClusterState):
    """The cache; the queue is empty until other profiles decide, which queues all pending pods."""

    def __init__(
        self, profiles: Mapping[str, Profile], behaviour: Behaviour, clock: Callable[[], float]
    ) -> None:
        """An empty cluster."""
        self._decides = False
        super().__init__(profiles, behaviour, clock)

    def change_profiles(self, profiles: Mapping[str, Profile], behaviour: Behaviour) -> None:
        """Queue all pending pods, so that these profiles can decide about them."""
        self._decides = True
        super().change_profiles(profiles, behaviour)

    def wake_pods(self, event: ClusterEvent) -> None:
        """Wake pods, once the queue has any."""
        if self._decides:
            super().wake_pods(event)

    def _pending_pod_changed(self, old: Pod | None, new: Pod) -> None:
        if self._decides:
            super()._pending_pod_changed(old, new)
        elif old is not None and new.terminating and self.cache.is_assumed(new.uid):
            self.forget(new)
