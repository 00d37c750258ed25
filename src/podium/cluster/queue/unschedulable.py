"""The unschedulable pool: pods that wait for an event, found by what they wait for.

An event concerns few of the waiting pods, and there may be a hundred thousand of them, so the pods
are listed under the topics that could wake them.
"""

from __future__ import annotations

from collections.abc import Collection

from podium.cluster.queue.queued_group import Entity


class WaitingPool:
    """Waiting pods by key and by topic."""

    def __init__(self) -> None:
        """An empty pool."""
        self._pods: dict[str, Entity] = {}
        self._topics: dict[str, Collection[str]] = {}
        self._by_topic: dict[str, dict[str, Entity]] = {}
        self._gated: set[str] = set()

    def __len__(self) -> int:
        """The number of waiting pods, gated ones included."""
        return len(self._pods)

    @property
    def gated(self) -> int:
        """How many of them are gated."""
        return len(self._gated)

    def get(self, key: str) -> Entity | None:
        """The waiting pod under this key."""
        return self._pods.get(key)

    def put(self, queued: Entity, topics: Collection[str]) -> None:
        """Let a pod wait, or list a waiting one under other topics."""
        key = queued.key
        self._unlist(key)
        self._pods[key] = queued
        self._topics[key] = topics
        for topic in topics:
            self._by_topic.setdefault(topic, {})[key] = queued
        if queued.gated_by:
            self._gated.add(key)

    def remove(self, key: str) -> Entity | None:
        """Take a pod out."""
        self._unlist(key)
        return self._pods.pop(key, None)

    def _unlist(self, key: str) -> None:
        for topic in self._topics.pop(key, ()):
            self._by_topic[topic].pop(key, None)
        self._gated.discard(key)

    def about(self, topics: Collection[str] | None) -> list[Entity]:
        """The pods listed under any of the *topics* (`None`: all), in the order of arrival."""
        if not self._pods:
            return []
        if topics is None:
            found = self._pods
        else:
            found = {}
            for topic in topics:
                found |= self._by_topic.get(topic, {})
        return sorted(found.values(), key=lambda queued: queued.arrival)
