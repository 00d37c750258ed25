"""The store in memory: what its history keeps."""

from __future__ import annotations

import tracemalloc

import pytest

from podium.lab.api.status import StatusError
from podium.lab.store.store import HISTORY_BYTES, Key, Store, Table

KEY = Key("default", "big")


def updated(times: int, size: int) -> Table:
    """The table of a ConfigMap of *size* bytes after so many updates."""
    store = Store()
    for number in range(times):
        item = {"metadata": {"name": "big"}, "data": {"text": str(number % 10) * size}}
        store.put("configmaps", KEY, item, {})
    return store.table("configmaps")


def test_the_history_is_bounded_by_bytes() -> None:
    table = updated(400, 200_000)

    kept = sum(len(event.record.data) for event in table.history)

    assert kept == table.history_bytes
    assert HISTORY_BYTES // 4 < kept <= HISTORY_BYTES
    assert [event.version for event in table.events_since(table.compacted)] == [
        event.version for event in table.history
    ]
    with pytest.raises(StatusError, match="too old resource version"):
        table.events_since(table.compacted - 1)


def test_watches_leave_nothing_in_the_history() -> None:
    table = updated(40, 200_000)
    tracemalloc.start()
    try:
        sent = sum(len(event.line) for event in table.history)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sent > table.history_bytes
    assert kept < table.history_bytes // 20


def test_the_newest_event_stays_however_large_it_is() -> None:
    table = updated(3, HISTORY_BYTES + 1)

    assert [event.version for event in table.history] == [4]


def test_small_objects_are_bounded_by_number_alone() -> None:
    assert len(updated(1000, 100).history) == 1000
