"""Events of controllers, as `kubectl describe` shows them: few enough not to matter.

Equal ones about the same object are counted, not repeated; of many at once, some are not told.

Upstream: client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from podium.lab.api.status import StatusError
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.controllers.framework.cluster import Cluster

#: So many at once, and so many per second in the long run.
_BURST: Final = 200.0
_PER_SECOND: Final = 20.0
_REMEMBERED: Final = 4096

_What = tuple[str, str, str, str]  # uid, reason, message, component


class Events:
    """Writes events, within a budget."""

    def __init__(self, cluster: Cluster) -> None:
        """Write to *cluster*."""
        self.cluster = cluster
        self._tokens = _BURST
        self._filled = cluster.now()
        self._told: OrderedDict[_What, tuple[str, str]] = OrderedDict()
        self._last = 0

    def normal(self, about: JsonObject, reason: str, message: str, component: str) -> None:
        """Something happened as it should."""
        self._tell(about, "Normal", reason, message, component)

    def warning(self, about: JsonObject, reason: str, message: str, component: str) -> None:
        """Something happened as it should not."""
        self._tell(about, "Warning", reason, message, component)

    def affordable(self) -> bool:
        """Whether an event would be told just now."""
        now = self.cluster.now()
        self._tokens = min(self._tokens + (now - self._filled) * _PER_SECOND, _BURST)
        self._filled = now
        return self._tokens >= 1

    def _tell(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> None:
        if not self.affordable():
            return
        self._tokens -= 1
        what = (about["metadata"]["uid"], reason, message, component)
        before = self._told.get(what)
        if before is None or not self._repeated(before):
            made = self._write(about, kind, reason, message, component)
            if made is not None:
                self._told[what] = made
                if len(self._told) > _REMEMBERED:
                    self._told.popitem(last=False)

    def _next(self) -> int:
        """The time in nanoseconds, never twice: events of an object are named in their order."""
        self._last = max(self._last + 1, int(self.cluster.now() * 1e9))
        return self._last

    def _repeated(self, before: tuple[str, str]) -> bool:
        """Count one that was told before; whether it is still there."""

        def again(event: JsonObject) -> None:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = self.cluster.timestamp()

        return self.cluster.change("Event", before, again) is not None

    def _write(
        self, about: JsonObject, kind: str, reason: str, message: str, component: str
    ) -> tuple[str, str] | None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        at = self.cluster.timestamp()
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{self._next():016x}",
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
            made = self.cluster.registry.create("Event", event)
        except StatusError:  # the namespace is going away
            return None
        return namespace, made["metadata"]["name"]
