"""Events of core/v1: repeated ones are counted, similar ones combined, too many dropped.

Three steps, each with its own memory: *combine* (ten different messages with one reason
within ten minutes become "(combined from similar events): …"), *count* (an event that exists gets
a higher count instead of a twin) and *drop* (25 at once per object, then one in five minutes).

Upstream: client-go tools/record/events_cache.go, Kubernetes v1.36.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.kube.events import EventNames, EventWrite, Occurrence, Recent, second

_MOST_ALIKE, _ALIKE_SECONDS = 10, 600.0
_BURST, _SECONDS_EACH = 25, 300.0
_COMBINED = "(combined from similar events): "

_Key = tuple[Any, ...]


class _Alike(msgspec.Struct):
    """The different messages of events that are otherwise the same."""

    messages: set[str] = msgspec.field(default_factory=set)
    last: float = 0.0


class _Counted(msgspec.Struct, frozen=True):
    """An event that was written, and how often it happened."""

    name: str
    count: int
    first: float


class _Bucket(msgspec.Struct):
    """The token bucket of one object: how many more events about it may be written."""

    tokens: float
    filled: float

    def take(self, now: float) -> bool:
        self.tokens = min(_BURST, self.tokens + max(0.0, now - self.filled) / _SECONDS_EACH)
        self.filled = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class CountingLedger:
    """The core/v1 events that were written, per source and object."""

    def __init__(self) -> None:
        self._names = EventNames()
        self._alike: Recent[_Key, _Alike] = Recent()
        self._counted: Recent[_Key, _Counted] = Recent()
        self._buckets: Recent[_Key, _Bucket] = Recent()

    def take(self, what: Occurrence, now: float) -> EventWrite | None:
        """The event to write, or its new count; None when its object had too many."""
        about = what.about
        source = (what.component, what.host, *about[:5])
        message, key = self._combined(what, (*source, what.type, what.reason), now)
        known = self._counted.get(key)
        if known is None:
            counted = _Counted(self._names.new(about, now), 1, now)
        else:
            counted = _Counted(known.name, known.count + 1, known.first)
        self._counted.put(key, counted)
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = _Bucket(_BURST, now)
            self._buckets.put(source, bucket)
        if not bucket.take(now):
            return None
        namespace = about.namespace or "default"
        event = _event(what, message, counted, now)
        if known is None:
            return EventWrite(namespace, counted.name, event)
        patch = {"count": counted.count, "lastTimestamp": second(now), "message": message}
        return EventWrite(namespace, counted.name, event, patch)

    def _combined(self, what: Occurrence, key: _Key, now: float) -> tuple[str, _Key]:
        """The message to write, and the key under which it is counted."""
        alike = self._alike.get(key)
        if alike is None or now - alike.last > _ALIKE_SECONDS:
            alike = _Alike()
            self._alike.put(key, alike)
        alike.messages.add(what.message)
        alike.last = now
        if len(alike.messages) < _MOST_ALIKE:
            return what.message, (*key, what.message)
        alike.messages.pop()  # keep the set as small as it is
        return _COMBINED + what.message, key

    def sweep(self, now: float) -> list[EventWrite]:  # noqa: ARG002
        """Return nothing: a count is written when the event happens."""
        return []


def _event(what: Occurrence, message: str, counted: _Counted, now: float) -> dict[str, Any]:
    source = {"component": what.component} | ({"host": what.host} if what.host else {})
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": counted.name, "namespace": what.about.namespace or "default"},
        "involvedObject": what.about.fields(),
        "reason": what.reason,
        "message": message,
        "source": source,
        "firstTimestamp": second(counted.first),
        "lastTimestamp": second(now),
        "count": counted.count,
        "type": what.type,
    }
