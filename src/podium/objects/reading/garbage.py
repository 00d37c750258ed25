"""Pauses garbage collection while many values are made that have no cycles."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Garbage is collected after this time even if one pause begins before the other has ended.
LONGEST_SECONDS: Final = 30.0


class _Pauses:
    """How many threads want no collection now, since when, and whether there was one before."""

    lock = threading.Lock()
    number = 0
    since = 0.0
    was_enabled = False


@contextmanager
def without_gc(*, lasting: bool = False) -> Iterator[None]:
    """Pause garbage collection: it would look at all values again and again, and free none.

    Where several threads do so at a time, it goes on after the last of them. *lasting* values
    count as old afterwards: the first collection would look at all of them.
    """
    with _Pauses.lock:
        now = time.monotonic()
        if not _Pauses.number:
            _Pauses.was_enabled, _Pauses.since = gc.isenabled(), now
            gc.disable()
        elif _Pauses.was_enabled and now - _Pauses.since > LONGEST_SECONDS:
            gc.collect(0)
            _Pauses.since = now
        _Pauses.number += 1
    try:
        yield
    finally:
        with _Pauses.lock:
            _Pauses.number -= 1
            if not _Pauses.number and _Pauses.was_enabled:
                if lasting and not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
