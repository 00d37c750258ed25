"""Independent pieces of work on all processors, each in a copy of this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
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

    With one worker, or where processes cannot be copied, they run here one after the other. No
    process is left when the results are not asked for any more, for example after an interrupt.
    """
    if workers <= 1 or len(work) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for index, piece in enumerate(work):
            yield index, piece()
        return
    _work[:] = work
    context = multiprocessing.get_context("fork")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(work)), mp_context=context, initializer=_depend_on_parent
    )
    try:
        with _interrupts_held():  # a new process has no time for one
            futures = {pool.submit(_run, index): index for index in range(len(work))}
        for future in as_completed(futures):
            yield futures[future], future.result()  # type: ignore[misc]
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # after an interrupt its work is not needed
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        _work.clear()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Take interrupts afterwards, in this process and in those that are started."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _depend_on_parent() -> None:
    """Let the process that waits for the results decide about interrupts, and end with it."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def end_with_parent() -> None:
    """End this process, whatever it does, when the one that started it has ended."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _run(index: int) -> object:
    return _work[index]()
