"""Sentences about a pod that waits: in which queue, until when, and what would wake it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_QUEUES: Final = {
    "active": "is in line and is tried as soon as it is its turn",
    "backoff": "rests before the next attempt",
    "unschedulable": "waits for a change of the cluster",
    "gated": "is held back and not tried at all",
}


def waiting_lines(waiting: Mapping[str, Any]) -> Iterator[str]:
    """One sentence per fact of what `/decisions` says about a waiting pod."""
    queue = str(waiting.get("queue", ""))
    since = f" since {waiting['since']}" if waiting.get("since") else ""
    yield f"It {_QUEUES.get(queue, 'waits')} (queue {queue}){since}."
    if waiting.get("gatedBy"):
        yield f"{waiting['gatedBy']} holds it back."
    if waiting.get("backoffUntil"):
        yield f"It is not tried before {waiting['backoffUntil']}, whatever happens."
    for each in waiting.get("waitsFor") or ():
        plugin = "Any rule" if each["plugin"] == "*" else each["plugin"]
        yield f"{plugin} waits for: {', '.join(each['events'])}."
    if waiting.get("retriedAt"):
        yield f"Without an event it is tried again at {waiting['retriedAt']} or soon after."
