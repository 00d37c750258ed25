"""Subscribers of the registry, called after each write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from podium.objects.kinds.meta import JsonObject

#: Called with the type of the event, the object before and the object now; either may be `None`.
Subscriber = Callable[[str, JsonObject | None, JsonObject | None], None]


class Subscriptions:
    """The subscribers of all resources.

    A write by a subscriber is announced after all subscribers were called for the write before, so
    all of them see the writes in the same order.
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._waiting: deque[tuple[str, str, JsonObject | None, JsonObject | None]] = deque()
        self._announcing = False

    def add(self, resources: Iterable[str], subscriber: Subscriber) -> Callable[[], None]:
        """Call *subscriber* after writes to these resources; the returned function ends that."""
        names = list(resources)
        for name in names:
            self._subscribers.setdefault(name, []).append(subscriber)

        def end() -> None:
            for name in names:
                self._subscribers[name].remove(subscriber)

        return end

    def announce(
        self, resource: str, event: str, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        """Call the subscribers of a resource for a write to it."""
        if not self._subscribers.get(resource):
            return
        self._waiting.append((resource, event, old, new))
        if self._announcing:
            return
        self._announcing = True
        try:
            while self._waiting:
                resource, event, old, new = self._waiting.popleft()
                for subscriber in tuple(self._subscribers.get(resource, ())):
                    subscriber(event, old, new)
        finally:
            self._announcing = False
