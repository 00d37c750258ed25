"""An asyncio event loop on virtual time.

Time stands still while callbacks run. When no callback is ready, it jumps to the next timer, so an
hour in which little happens takes milliseconds. The loop reads no clock and waits for nothing
outside the process. The same program therefore makes the same calls in the same order at the same
virtual times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, TypeVarTuple

from podium.errors import PodiumError
from podium.lab.controllers.framework.clock import wait_for
from podium.scheduler.state.clock import Clocks

if TYPE_CHECKING:
    import contextvars

#: The virtual seconds that one turn of the loop takes. Because of it time moves on even if
#: callbacks schedule each other without a pause, as it does on a real machine.
TURN_SECONDS: Final = 1e-6

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


Connector = Callable[
    [Callable[[], asyncio.Protocol], str], Awaitable[tuple[asyncio.Transport, asyncio.Protocol]]
]


class StalledError(PodiumError):
    """Nothing is left that could ever happen, and what is waited for has not happened."""


class RealWorldError(PodiumError):
    """A program on virtual time has asked for something outside the process."""


def _refuse(what: str) -> NoReturn:
    raise RealWorldError(f"cannot {what}: this program runs on virtual time, in one process")


def _refusal(what: str) -> Any:
    """A method that refuses to do something."""
    return lambda *_, **__: _refuse(what)


class _Timers:
    """Takes the place of the selector: instead of waiting, it moves the virtual time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.interrupted = False

    def select(self, timeout: float | None) -> list[Any]:
        """Let *timeout* virtual seconds pass; None means that there is no timer at all."""
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        if timeout is None:
            raise StalledError("no task is ready and no timer is set: nothing can happen any more")
        self.now += timeout or TURN_SECONDS
        return []


class VirtualEventLoop(asyncio.BaseEventLoop):
    """Runs callbacks and tasks in virtual seconds since the loop was made.

    `asyncio.sleep`, `asyncio.timeout`, `call_later`, tasks, events and queues work as they do on
    any loop. A function for a thread (`asyncio.to_thread`, `run_in_executor`) is called at once, in
    this thread. Sockets, processes and signals raise a `RealWorldError`. With a `connector`,
    connections are opened in memory.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Opens a connection to a host: called with what makes its protocol, and with its name.
        self.connector: Connector | None = None
        self._selector = _Timers()
        # Sums of times are rounded; a timer that is due within this time is due.
        self._clock_resolution = TURN_SECONDS / 2

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._selector.now

    def let_pass(self, seconds: float) -> None:
        """Let time pass inside a callback, as it does while something is computed for long."""
        self._selector.now += seconds

    def interrupt(self) -> None:
        """Raise a `KeyboardInterrupt` where the loop runs, between two of its turns.

        No task is ended by it, so that the loop can be run on. A second one is raised at once.
        """
        if self._selector.interrupted:
            raise KeyboardInterrupt
        self._selector.interrupted = True

    def run_for(self, seconds: float) -> None:
        """Run everything that happens in the next *seconds*, and return when they are over."""
        self.run_until(self.time() + seconds)

    def run_until(self, when: float) -> None:
        """Run everything that happens until the virtual time *when*, which may be now."""
        timer = self.call_at(when, self.stop)
        try:
            self.run_forever()
        finally:
            timer.cancel()

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002
        func: Callable[[*_Arguments], _Result],
        *args: *_Arguments,
    ) -> asyncio.Future[_Result]:
        """Call the function at once; the future has its result or its exception already."""
        future: asyncio.Future[_Result] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  the exception belongs to who awaits the future
            future.set_exception(error)
        return future

    # What BaseEventLoop asks of its subclasses -----------------------------------------------

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events of sockets."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps, so it need not be woken."""

    # What has no place on virtual time --------------------------------------------------------

    getaddrinfo = _refusal("resolve the name of a host")
    create_server = _refusal("listen on a socket")
    create_datagram_endpoint = _refusal("open a datagram socket")
    subprocess_exec = subprocess_shell = _refusal("start a process")
    add_reader = add_writer = _refusal("wait for a file descriptor")
    add_signal_handler = _refusal("handle a signal")

    async def create_connection(  # type: ignore[override]
        self, made: Callable[[], Any], host: str = "", *_: Any, **__: Any
    ) -> tuple[asyncio.Transport, Any]:
        """Connect in memory; refuse where nothing is there to connect to."""
        if self.connector is None:
            _refuse("open a connection")
        return await self.connector(made, host)

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback, which must not come from another thread."""
        if self.is_running() and asyncio._get_running_loop() is not self:  # noqa: SLF001
            _refuse("take a callback from another thread")
        return self.call_soon(callback, *args, context=context)


#: The default of the wall clock at the beginning: 2026-01-01T00:00:00Z.
START: Final = 1_767_225_600.0


class VirtualClock:
    """One machine's time: the wall clock of the loop, with the error of this machine.

    It is the clock of the lab's controllers and of the registry; `clocks` are those of a scheduler.
    `rate` is the speed of the machine's clocks compared with the loop: 1.01 runs 1 % fast.
    `set_forward` sets the wall clock forward or back, as a person or a time server would; what is
    measured by the steady clock does not notice.
    """

    def __init__(self, loop: VirtualEventLoop, *, start: float = START, rate: float = 1.0) -> None:
        self._loop, self._start, self._rate = loop, start, rate
        self._wall_error = 0.0

    def set_forward(self, seconds: float) -> None:
        """Change what the wall clock shows by so many seconds, which may be negative."""
        self._wall_error += seconds

    def now(self) -> float:
        """Seconds since 1970 by the wall clock of this machine."""
        return self.steady() + self._wall_error

    def steady(self) -> float:
        """Seconds since 1970 by a clock that is never set."""
        return self._start + self.stopwatch()

    def stopwatch(self) -> float:
        """Seconds since the loop was made, as this machine counts them."""
        return self._loop.time() * self._rate

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this machine."""
        await asyncio.sleep(seconds / self._rate)

    async def wait(self, woken: asyncio.Event, until: float | None) -> None:
        """Let other tasks run until *woken* is set or the wall clock shows *until*, if given."""
        await wait_for(woken, None if until is None else (until - self.now()) / self._rate)

    def clocks(self) -> Clocks:
        """The clocks of a scheduler on this machine."""
        return Clocks(wall=self.now, steady=self.steady, timer=self.stopwatch, sleep=self.sleep)
