"""Pauses of garbage collection that overlap."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from weakref import ref

import pytest

from podium.objects.reading import garbage
from podium.objects.reading.garbage import without_gc


class Cycle:
    """An object that only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


def test_collection_goes_on_after_the_last_pause() -> None:
    first, second = ExitStack(), ExitStack()
    assert gc.isenabled()

    first.enter_context(without_gc())
    second.enter_context(without_gc())
    first.close()
    assert not gc.isenabled()
    second.close()

    assert gc.isenabled()


def test_pauses_without_end_do_not_keep_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "LONGEST_SECONDS", 0.0)

    with without_gc():
        left = ref(Cycle())
        assert left() is not None
        with without_gc():
            assert left() is None
