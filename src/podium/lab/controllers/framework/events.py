"""Events that controllers record, as `kubectl describe` shows them.

An event that was recorded before is counted instead of created again. A token bucket limits how
many events are written; those beyond it are dropped.

Upstream: client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from podium.lab.api.status import StatusError
from podium.lab.api.timestamps import format_time
from podium.lab.controllers.framework.object_fields import Key
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

_BURST: Final = 200.0
_PER_SECOND: Final = 20.0
_REMEMBERED: Final = 4096
_NOT_FOUND: Final = 404

_Identity = tuple[str, str, str, str]  # uid, reason, message, component


class ControllerEvents:
    """Writes events about objects, within a budget."""

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        """Write to *registry*; *now* reads the time."""
        self._registry = registry
        self._now = now
        self._tokens = _BURST
        self._refilled = now()
        self._recorded: OrderedDict[_Identity, Key] = OrderedDict()
        self._last_name = 0

    def normal(self, about: JsonObject, reason: str, message: str, component: str) -> None:
        """Record an event of type Normal."""
        self._record(about, "Normal", reason, message, component)

    def warning(self, about: JsonObject, reason: str, message: str, component: str) -> None:
        """Record an event of type Warning."""
        self._record(about, "Warning", reason, message, component)

    def has_budget(self) -> bool:
        """Whether an event recorded now would be written."""
        now = self._now()
        self._tokens = min(self._tokens + (now - self._refilled) * _PER_SECOND, _BURST)
        self._refilled = now
        return self._tokens >= 1

    def _record(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> None:
        if not self.has_budget():
            return
        self._tokens -= 1
        identity = (about["metadata"]["uid"], reason, message, component)
        before = self._recorded.get(identity)
        if before is None or not self._count(before):
            key = self._create(about, kind, reason, message, component)
            if key is not None:
                self._recorded[identity] = key
                if len(self._recorded) > _REMEMBERED:
                    self._recorded.popitem(last=False)

    def _next_name(self) -> int:
        """The time in nanoseconds, never the same twice: names sort in the order of events."""
        self._last_name = max(self._last_name + 1, int(self._now() * 1e9))
        return self._last_name

    def _count(self, key: Key) -> bool:
        """Increase the count of a recorded event; False if it is gone."""

        def count(event: JsonObject) -> JsonObject:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = format_time(self._now())
            return event

        try:
            self._registry.modify("Event", key[1], key[0], change=count)
        except StatusError as error:
            if error.code != _NOT_FOUND:
                raise
            return False
        return True

    def _create(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> Key | None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        at = format_time(self._now())
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{self._next_name():016x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        try:
            made = self._registry.create("Event", event)
        except StatusError:  # the namespace is terminating
            return None
        return namespace, made["metadata"]["name"]
