"""The event loop of a program: uvloop where it is installed, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


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


def on_stop_signal(stop: Callable[[], None]) -> None:
    """Call *stop* when the program receives SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
