"""Placing pods in mind only, beside a scheduler that really does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.cluster_state import Beliefs
    from podium.daemon.observers import Attempted

#: How long the other scheduler may take to do what we would have done.
PATIENCE_SECONDS = 30.0


class Pretender:
    """In place of a binder: waits for somebody else to bind the pod, for a while."""

    def __init__(self, beliefs: Beliefs, now: Callable[[], float]) -> None:
        self._beliefs = beliefs
        self._now = now

    def start(self, turn: Turn, attempted: Attempted) -> None:  # noqa: ARG002
        """From now on the other scheduler's word is awaited."""
        self._beliefs.cache.finish_binding(attempted.pod.uid, self._now())
