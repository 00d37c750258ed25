"""Why a pod waits and what would wake it, as JSON data for `/decisions`, `why` and the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from podium.objects.times import NEVER

if TYPE_CHECKING:
    from podium.cluster.queue.queue import SchedulingQueue


def waiting_data(queue: SchedulingQueue, key: str) -> dict[str, Any] | None:
    """Where the pod `namespace/name` waits, since when and for what; None if it is not queued."""
    waiting = queue.waiting(key)
    if waiting is None:
        return None
    found: dict[str, Any] = {"queue": str(waiting.pool), "attempts": waiting.attempts}
    for name, seconds in (
        ("since", waiting.since),
        ("backoffUntil", waiting.backoff_until),
        ("retriedAt", waiting.retried_at),
    ):
        if seconds is not None and seconds != NEVER:
            found[name] = _time(seconds)
    if waiting.gated_by:
        found["gatedBy"] = waiting.gated_by
    if waiting.awaited:
        found["waitsFor"] = [
            {"plugin": plugin, "events": list(events)} for plugin, events in waiting.awaited.items()
        ]
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
