"""Computing in another thread while the scheduler decides."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
P = ParamSpec("P")

#: Garbage is collected after this time even if one thread begins before the other has ended.
LONGEST_SECONDS: Final = 30.0


async def beside_decisions(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Compute something in another thread.

    Garbage is not collected meanwhile: that would hold up decisions, and look at all that is being
    computed again and again.
    """

    def computed() -> T:
        with no_collection():
            return work(*given, **named)

    return await asyncio.to_thread(computed)


def let_go(items: list[T] | dict[str, T]) -> None:
    """Free many items one after the other: freeing all at once would hold up decisions."""
    take = items.popitem if isinstance(items, dict) else items.pop
    while items:
        take()


class _Pauses:
    """How many threads want no collection now, since when, and whether there was one before."""

    lock = threading.Lock()
    number = 0
    since = 0.0
    was_enabled = False


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage until the last of the threads that ask for it has ended."""
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
                gc.enable()
