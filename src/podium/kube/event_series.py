"""Events of events.k8s.io/v1: repeated ones become a series with a count.

The first is written at once, the second turns it into a series; those after it are only counted
until the series is refreshed (every half hour) or is over (six minutes without another).

Upstream: client-go tools/events/event_broadcaster.go, Kubernetes v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.kube.events import EventNames, EventWrite, Occurrence, Recent, microsecond

_OVER_SECONDS, _REFRESH_SECONDS = 360.0, 1800.0
#: The longest note that the API server takes, in bytes.
_LONGEST_NOTE, _CUT = 1024, b" ..."

_Key = tuple[Any, ...]


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
    """The events.k8s.io/v1 events that were written, per reporter, object, action and reason."""

    def __init__(self) -> None:
        self._names = EventNames()
        self._series: Recent[_Key, _Series] = Recent()

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
