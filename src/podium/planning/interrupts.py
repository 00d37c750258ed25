"""Interrupts of programs on virtual time: a task that is interrupted midway could not go on."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.simulation.event_loop import VirtualEventLoop


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
