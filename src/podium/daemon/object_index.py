"""What a reflector says of one kind of object, as changes: it came, it changed, it went.

A list that is read again tells of everything that was missed since: objects that are absent from
it went, and one under the same name with another uid went and came back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

T = TypeVar("T", bound=Object)


class Sink(Generic[T]):
    """The objects of one kind as last seen, by `namespace/name`."""

    def __init__(self, heard: Callable[[T | None, T | None], None]) -> None:
        """*heard* is told of each change: the object before and after, None where there is none."""
        self.known: dict[str, T] = {}
        self._heard = heard

    def replace(self, items: list[Any]) -> None:
        """These are all there are."""
        kept = {item.key for item in items}
        for gone in [item for key, item in self.known.items() if key not in kept]:
            self.drop(gone)
        for item in items:
            self.put(item)

    def put(self, item: T) -> None:
        """An object came or changed."""
        key = item.key
        old = self.known.get(key)
        if old is not None:
            if old.metadata.uid != item.metadata.uid:
                self.drop(old)
                old = None
            elif old.metadata.resource_version == item.metadata.resource_version:
                return
        self.known[key] = item
        self._heard(old, item)

    def drop(self, item: T) -> None:
        """An object went."""
        old = self.known.pop(item.key, None)
        if old is not None:
            self._heard(old, None)


class PodSink(Sink[Pod]):
    """Pods; one that ran to its end is gone as far as scheduling is concerned."""

    def put(self, item: Pod) -> None:
        """A pod came, changed, or ended."""
        if item.finished:
            self.drop(item)
        else:
            super().put(item)
