"""Pauses garbage collection while many values are made that have no cycles."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_gc(*, lasting: bool = False) -> Iterator[None]:
    """Pause garbage collection: it would look at all values again and again, and free none.

    *lasting* values count as old afterwards: the first collection would look at all of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if lasting and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
