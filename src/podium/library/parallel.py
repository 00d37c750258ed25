"""Independent pieces of work on all processors, each in a copy of this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

#: The work at hand; copies of this process inherit it, so that nothing large is sent to them.
_work: list[Callable[[], object]] = []


def processors() -> int:
    """How many pieces of work can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(work: Sequence[Callable[[], T]], workers: int) -> Iterator[tuple[int, T]]:
    """The index and the result of each piece of work, as they are done.

    With one worker, or where processes cannot be copied, they run here one after the other.
    """
    if workers <= 1 or len(work) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for index, piece in enumerate(work):
            yield index, piece()
        return
    _work[:] = work
    context = multiprocessing.get_context("fork")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(work)), mp_context=context, initializer=_ignore_interrupts
    )
    try:
        futures = {pool.submit(_run, index): index for index in range(len(work))}
        for future in as_completed(futures):
            yield futures[future], future.result()  # type: ignore[misc]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # after an interrupt its work is not needed
        _work.clear()


def _ignore_interrupts() -> None:
    """Let the process that waits for the results handle interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(index: int) -> object:
    return _work[index]()
