"""Interrupts of programs on virtual time: a task that is interrupted midway could not go on."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.virtual_cluster.event_loop import VirtualEventLoop

_T = TypeVar("_T")
#: How often a thread is looked at.
_LOOK_SECONDS: Final = 0.1


@contextmanager
def at_any_time() -> Iterator[None]:
    """Let Ctrl-C raise its `KeyboardInterrupt` at once again, while no loop is running."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not is_main or before is signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def between_turns(loop: VirtualEventLoop) -> Iterator[None]:
    """Let Ctrl-C raise its `KeyboardInterrupt` between two turns of the loop, not inside a task.

    Only in the main thread, and only if the program handles the signal in no other way.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: loop.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def in_thread(work: Callable[[], _T]) -> _T:
    """The result of long work in compiled code, which Ctrl-C would have to wait for otherwise.

    After an interrupt the thread is left to itself; it does not keep the program from ending.
    """
    done: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  raised again below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
    if failed:
        raise failed[0]
    return done[0]
