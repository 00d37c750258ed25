"""The event loop of a program: uvloop where it is installed, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_Result = TypeVar("_Result")

#: Descriptors for watches, ports, event loops and files; connections that are needed anyway.
_OTHER_DESCRIPTORS = 90
_FEWEST_CONNECTIONS = 8


def run_program(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end in an event loop of its own."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop of the fastest kind that is installed."""
    try:
        import uvloop  # noqa: PLC0415  there is none for some systems
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def raise_descriptors() -> None:
    """Allow this process as many descriptors as it may have, as Go programs do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def collect_rarely() -> None:
    """Look for garbage less often than usual from now on, and not among what there is by now.

    Few objects refer to each other, and a collection holds up everything else.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def connections_within_descriptors(most: int = 64) -> int:
    """How many connections to an API server leave descriptors for watches, ports and files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST_CONNECTIONS, min(most, soft - _OTHER_DESCRIPTORS))


def on_stop_signal(stop: Callable[[], None]) -> None:
    """Call *stop* when the program receives SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
