"""The binder of shadow mode: sends no binding, and waits for the other scheduler's one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.cluster_state import ClusterState
    from podium.daemon.observers import AttemptResult


class ShadowBinder:
    """Leaves a decided pod assumed until the watch shows its node, or the assumption expires."""

    def __init__(self, state: ClusterState, now: Callable[[], float]) -> None:
        self._state = state
        self._now = now

    def start(self, turn: Turn, result: AttemptResult) -> None:  # noqa: ARG002  as a binder's
        """Start the time in which the other scheduler has to bind the pod."""
        self._state.cache.finish_binding(result.pod.uid, self._now())
