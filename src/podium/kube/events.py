"""Events about objects, and how each of the two event APIs writes them.

`Occurrence` is what happened. A `Ledger` remembers the events of the past and turns an occurrence
into a `EventWrite`: a new event, or a change to one that exists.
"""

from __future__ import annotations

from collections import OrderedDict
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
