"""Pauses of garbage collection for threads beside the scheduler."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from weakref import ref

import pytest

from podium.scheduler.state import cluster_copy
from podium.scheduler.state.cluster_copy import no_collection


class Cycle:
    """An object that only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


def test_collection_goes_on_after_the_last_pause() -> None:
    first, second = ExitStack(), ExitStack()
    assert gc.isenabled()

    first.enter_context(no_collection())
    second.enter_context(no_collection())
    first.close()
    assert not gc.isenabled()
    second.close()

    assert gc.isenabled()


def test_pauses_without_end_do_not_keep_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_copy, "LONGEST_SECONDS", 0.0)

    with no_collection():
        left = ref(Cycle())
        assert left() is not None
        with no_collection():
            assert left() is None
