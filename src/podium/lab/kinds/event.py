"""Events: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.kind import (
    KindStrategy,
    Printer,
    name_of,
    number_at,
    object_at,
    text_at,
    time_since,
)
from podium.objects.kinds.meta import JsonObject


def validate_event(item: JsonObject) -> FieldErrors:
    """Validate an event: it is in the namespace of the object it is about."""
    namespace = item["metadata"].get("namespace") or ""
    about = item.get("involvedObject") or {}
    own = about.get("namespace") or ""
    if own and own != namespace:
        what = "does not match event.namespace"
        yield invalid_value("involvedObject.namespace", own, what)


def _event_cells(event: JsonObject, now: float) -> list[Any]:
    about = object_at(event, "involvedObject") or object_at(event, "regarding")
    if "regarding" in event:  # as events.k8s.io has them
        old = {key.removeprefix("deprecated"): value for key, value in event.items()}
        event = {key[:1].lower() + key[1:]: value for key, value in old.items()} | event
    first = event.get("firstTimestamp") or event.get("eventTime")
    last, count = event.get("lastTimestamp") or first, number_at(event, "count") or 1
    series = event.get("series")
    if isinstance(series, dict):
        last, count = series.get("lastObservedTime"), number_at(series, "count")
    kind, name = text_at(about, "kind").lower(), text_at(about, "name")
    component = text_at(event, "source", "component") or text_at(event, "reportingComponent")
    host = text_at(event, "source", "host") or text_at(event, "reportingInstance")
    return [
        time_since(last, now),
        text_at(event, "type"),
        text_at(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text_at(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        (text_at(event, "message") or text_at(event, "note")).strip(),
        time_since(first, now),
        count,
        name_of(event),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "Event": KindStrategy(
        validate=validate_event,
        allows_create_on_update=True,
        table=Printer(
            "Last Seen, Type, Reason, Object, *Subobject, *Source, Message, *First Seen, "
            "*Count, *Name",
            _event_cells,
        ),
    ),
}
