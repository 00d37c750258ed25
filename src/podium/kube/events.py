"""What is said about an object, and how it is written: one form per API that takes events.

`Occurrence` is what happened. A *ledger* remembers what was said before and turns an occurrence
into a `Write`: a new event, or a change to one that exists.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

CORE, EVENTS = "v1", "events.k8s.io/v1"
#: How many different things a ledger remembers at most.
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
        """As an API server reads it, without what is empty."""
        named = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
        }
        return {name: text for name, text in named.items() if text}


class Occurrence(NamedTuple):
    """Something that happened to an object."""

    about: Reference
    type: str
    reason: str
    message: str
    component: str
    #: Where it runs; empty where that is not said.
    host: str = ""
    action: str = ""
    related: Reference | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """An event to be created, or, with a *patch*, changed; created all the same if it is gone."""

    namespace: str
    name: str
    event: dict[str, Any]
    patch: dict[str, Any] | None = None


class Ledger(Protocol):
    """Remembers what was said, so that it is not said again and again."""

    def take(self, what: Occurrence, now: float) -> Write | None:
        """What to write about it; nothing when enough has been said."""

    def sweep(self, now: float) -> list[Write]:
        """What is due by itself, now and then."""


_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


class Recent(Generic[_Key, _Kept]):
    """A mapping that forgets what was not asked for longest."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def get(self, key: _Key) -> _Kept | None:
        """What is kept under this key."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: _Key, value: _Kept) -> None:
        """Keep this."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def drop(self, key: _Key) -> None:
        """Forget it."""
        self._kept.pop(key, None)

    def items(self) -> list[tuple[_Key, _Kept]]:
        """All of it, the oldest first."""
        return list(self._kept.items())

    def __len__(self) -> int:
        return len(self._kept)


class EventNames:
    """Names that are not taken: the object's, and the time in nanoseconds, never the same twice."""

    def __init__(self) -> None:
        self._last = 0

    def new(self, about: Reference, now: float) -> str:
        """A name for an event about this object."""
        self._last = max(int(now * 1e9), self._last + 1)
        return f"{about.name}.{self._last:x}"


def second(now: float) -> str:
    """A time as most fields have it."""
    return _second(int(now))


@lru_cache(maxsize=8)
def _second(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microsecond(now: float) -> str:
    """A time as newer fields have it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
