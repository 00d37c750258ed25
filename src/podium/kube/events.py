"""Events about objects, and how each of the two event APIs writes them.

`Occurrence` is what happened. A `Ledger` remembers the events of the past and turns an occurrence
into a `EventWrite`: a new event, or a change to one that exists.

Upstream: client-go tools/events/event_broadcaster.go and tools/record/events_cache.go, Kubernetes
v1.36.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

CORE, EVENTS = "v1", "events.k8s.io/v1"
#: How many different events a ledger remembers at most.
REMEMBERED = 4096


class Reference(NamedTuple):
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str = "v1"
    resource_version: str = ""

    def fields(self) -> dict[str, str]:
        """The fields of an ObjectReference; besides kind and name, without the empty ones."""
        found = {"kind": self.kind, "name": self.name}
        if self.namespace:
            found["namespace"] = self.namespace
        if self.uid:
            found["uid"] = self.uid
        if self.api_version:
            found["apiVersion"] = self.api_version
        if self.resource_version:
            found["resourceVersion"] = self.resource_version
        return found


class Occurrence(msgspec.Struct, frozen=True):
    """One thing that happened to an object."""

    about: Reference
    type: str
    reason: str
    message: str
    component: str
    #: The host of the component; empty where it is left out.
    host: str = ""
    action: str = ""
    related: Reference | None = None


class EventWrite(msgspec.Struct, frozen=True):
    """An event to create or, with a *patch*, to change; created if it does not exist any more."""

    namespace: str
    name: str
    event: dict[str, Any]
    patch: dict[str, Any] | None = None


class Ledger(Protocol):
    """Remembers events, so that repeated ones are counted instead of written again."""

    def take(self, what: Occurrence, now: float) -> EventWrite | None:
        """The event to create or change; None when nothing is to be written."""

    def sweep(self, now: float) -> list[EventWrite]:
        """The changes that are due because of the time; called at intervals."""


_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


class Recent(Generic[_Key, _Kept]):
    """A mapping of limited size that drops the least recently used entry."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def get(self, key: _Key) -> _Kept | None:
        """The value of a key, which counts as used."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: _Key, value: _Kept) -> None:
        """Set the value of a key, which counts as used."""
        kept = self._kept
        before = len(kept)
        kept[key] = value
        if len(kept) == before:
            kept.move_to_end(key)  # a new key is at the end already
        elif before >= self._size:
            kept.popitem(last=False)

    def drop(self, key: _Key) -> None:
        """Remove a key."""
        self._kept.pop(key, None)

    def items(self) -> list[tuple[_Key, _Kept]]:
        """All entries, the least recently used first."""
        return list(self._kept.items())

    def __len__(self) -> int:
        return len(self._kept)


class EventNames:
    """Unique names of events: the object's name, and the time in nanoseconds."""

    def __init__(self) -> None:
        self._last = 0

    def new(self, about: Reference, now: float) -> str:
        """A new name for an event about this object."""
        self._last = max(int(now * 1e9), self._last + 1)
        return f"{about.name}.{self._last:x}"


def second(now: float) -> str:
    """A time in the form of `metav1.Time`, to the second."""
    return _second(int(now))


@lru_cache(maxsize=8)
def _second(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microsecond(now: float) -> str:
    """A time in the form of `metav1.MicroTime`."""
    whole = int(now)
    millionths = round((now - whole) * 1e6)
    if not 0 <= millionths < 1_000_000:
        return datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds")[:26] + "Z"
    return f"{_until_fraction(whole)}{millionths:06d}Z"


@lru_cache(maxsize=8)
def _until_fraction(now: int) -> str:
    """The time up to the point before its fraction."""
    return f"{_second(now)[:-1]}."


_OVER_SECONDS, _REFRESH_SECONDS = 360.0, 1800.0
#: The longest note that the API server takes, in bytes.
_LONGEST_NOTE, _CUT = 1024, b" ..."

_Identity = tuple[Any, ...]


@dataclass(slots=True)
class _Series:
    """An event that was written, and how often it happened since."""

    name: str
    what: Occurrence
    began: float
    last: float
    written: float
    count: int = 1


class SeriesLedger:
    """The events.k8s.io/v1 events that were written, per reporter, object, action and reason.

    The first is written at once, the second turns it into a series. Those after it are only
    counted, until the series is refreshed (every half hour) or is over (six minutes without
    another).
    """

    def __init__(self) -> None:
        self._names = EventNames()
        self._series: Recent[_Identity, _Series] = Recent()

    def take(self, what: Occurrence, now: float) -> EventWrite | None:
        """The new event, or the series it has become; None for one that is only counted."""
        said = (what.type, what.action, what.reason)
        key = (*said, what.component, what.host, what.about, what.related)
        series = self._series.get(key)
        if series is None:
            series = _Series(self._names.new(what.about, now), what, now, now, now)
            self._series.put(key, series)
            return _write(series)
        series.count += 1
        series.last = now
        if series.count > 2:
            return None
        series.written = now
        return _write(series)

    def sweep(self, now: float) -> list[EventWrite]:
        """The series that are over, and those whose count was not written for long."""
        writes = []
        for key, series in self._series.items():
            over = now - series.last > _OVER_SECONDS
            if over:
                self._series.drop(key)
            if series.count > 1 and (over or now - series.written >= _REFRESH_SECONDS):
                series.written = now
                writes.append(_write(series))
        return writes


def _write(series: _Series) -> EventWrite:
    what = series.what
    namespace = what.about.namespace or "default"
    event: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": series.name, "namespace": namespace},
        "eventTime": microsecond(series.began),
        "reportingController": what.component,
        "reportingInstance": f"{what.component}-{what.host}",
        "action": what.action,
        "reason": what.reason,
        "regarding": what.about.fields(),
        "note": _note(what.message),
        "type": what.type,
    }
    if what.related is not None:
        event["related"] = what.related.fields()
    if series.count == 1:
        return EventWrite(namespace, series.name, event)
    state = {"count": series.count, "lastObservedTime": microsecond(series.last)}
    return EventWrite(namespace, series.name, event | {"series": state}, {"series": state})


def _note(message: str) -> str:
    if len(message) <= _LONGEST_NOTE and message.isascii():
        return message
    text = message.encode()
    if len(text) <= _LONGEST_NOTE:
        return message
    return (text[: _LONGEST_NOTE - len(_CUT)] + _CUT).decode("utf-8", "ignore")


_MOST_ALIKE, _ALIKE_SECONDS = 10, 600.0
_BURST, _SECONDS_EACH = 25, 300.0
_COMBINED = "(combined from similar events): "


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
    """The core/v1 events that were written, per source and object.

    Three steps have memories of their own. Ten different messages with one reason within ten
    minutes are combined. An event that exists gets a higher count instead of a twin. Of 25 events
    at once about an object, further ones are dropped, but for one in five minutes.
    """

    def __init__(self) -> None:
        self._names = EventNames()
        self._alike: Recent[_Identity, _Alike] = Recent()
        self._counted: Recent[_Identity, _Counted] = Recent()
        self._buckets: Recent[_Identity, _Bucket] = Recent()

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

    def _combined(self, what: Occurrence, key: _Identity, now: float) -> tuple[str, _Identity]:
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
