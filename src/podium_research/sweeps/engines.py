"""Where the cells of a sweep run: processes of this machine, or the workers of a Dask cluster.

Both are a `concurrent.futures.Executor`. A worker that dies costs the cells that it was running;
these are run again elsewhere.
"""

from __future__ import annotations

import logging
import multiprocessing
import queue
import signal
import threading
from collections import Counter, deque
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.errors import InputError
from podium.library.parallel import end_with_parent
from podium_research.sweeps.cells import CellOutcome
from podium_research.sweeps.runs import run_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from podium_research.sweeps.cells import Cell

#: A cell whose worker died so many times is given up.
ATTEMPTS = 3
#: `--dask` with this address starts workers on this machine.
LOCAL = "local"


class WorkerLostError(BrokenExecutor):
    """The process that ran a call has ended."""


class LocalProcesses(Executor):
    """So many processes, each with one call at a time; one that dies is replaced."""

    def __init__(self, processes: int) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._workers = [_Worker(self._calls) for _ in range(processes)]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let the next free process make a call."""
        call = _Call(Future(), fn, args, kwargs)
        self._calls.put(call)
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """End the processes: after the calls that were submitted, or at once."""
        if cancel_futures:
            for worker in self._workers:
                worker.stop()
        for _ in self._workers:
            self._calls.put(None)
        if wait:
            for worker in self._workers:
                worker.join()

    @property
    def process_ids(self) -> list[int]:
        """The processes that are running."""
        found = [worker.process_id for worker in self._workers]
        return [number for number in found if number is not None]


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start threads and processes that take no interrupt.

    An interrupt of a terminal reaches all its processes; a worker that takes it ends with a
    traceback. One that comes meanwhile is taken at the end of the `with`.
    """
    resource_tracker.ensure_running()  # otherwise it would be started, and allow interrupts again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Call(NamedTuple):
    """A call that waits for a process."""

    future: Future[Any]
    function: Callable[..., Any]
    positional: tuple[Any, ...]
    named: dict[str, Any]


class _Worker(threading.Thread):
    """A thread that hands calls to a process of its own."""

    def __init__(self, calls: queue.SimpleQueue[_Call | None]) -> None:
        super().__init__(daemon=True)
        self._calls = calls
        self._process: BaseProcess | None = None
        #: Held while a process is started, so that none is after `stop`.
        self._starting = threading.Lock()
        self._stopped = False
        self.start()

    @property
    def process_id(self) -> int | None:
        """The process, if it was started."""
        return self._process.pid if self._process is not None else None

    def stop(self) -> None:
        """End the process, whatever it does."""
        with self._starting:
            self._stopped = True
        if self._process is not None:
            self._process.kill()

    def run(self) -> None:
        """Hand over one call after the other."""
        connection: Connection | None = None
        while (call := self._calls.get()) is not None:
            if self._stopped or not call.future.set_running_or_notify_cancel():
                continue
            connection = connection or self._new_process()
            if connection is None:
                call.future.set_exception(WorkerLostError("no process is started any more"))
                continue
            try:
                connection.send((call.function, call.positional, call.named))
                succeeded, result = connection.recv()
            except (EOFError, OSError):
                connection = None
                call.future.set_exception(WorkerLostError("the process has ended"))
                continue
            if succeeded:
                call.future.set_result(result)
            else:
                call.future.set_exception(result)
        if connection is not None:
            connection.close()

    def _new_process(self) -> Connection | None:
        """A new process; its modules are imported afresh, so that it shares no state with this.

        None after `stop`.
        """
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with self._starting:
            if self._stopped:
                return None
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            with _without_interrupts():
                self._process.start()
        theirs.close()
        return ours


def _serve(connection: Connection) -> None:
    """Make the calls that arrive, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that started it decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent()
    while True:
        try:
            function, positional, named = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (True, function(*positional, **named))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is read
            answer = (False, error)
        try:
            connection.send(answer)
        except OSError:
            return  # the program that started it has ended


class Engine(NamedTuple):
    """An executor, how many calls it is given at a time, and what it raises for lost workers."""

    executor: Executor
    width: Callable[[], int]
    lost: tuple[type[BaseException], ...]


@contextmanager
def local_engine(processes: int) -> Iterator[Engine]:
    """Processes of this machine; they end with the `with`."""
    executor = LocalProcesses(processes)
    try:
        # One more than there are processes, so that none waits for its next call.
        yield Engine(executor, lambda: processes + 1, (WorkerLostError,))
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def dask_engine(address: str, workers: int) -> Iterator[Engine]:
    """The workers of a Dask cluster at an address, or on this machine (`local`)."""
    try:
        import distributed  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError("Dask is not installed", hint="install podium-research[dask]") from None
    dask: Any = distributed  # it has no types
    cluster: Any = None
    if address == LOCAL:
        with _without_interrupts():
            cluster = dask.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                # Whoever reaches the scheduler may run code: keys are made for this run, and
                # other users of this machine have none. There is no dashboard either.
                security=dask.Security.temporary(),
                dashboard_address=None,
                # Health and metrics are served all the same: here, on a port that is free.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,  # what matters is in the outcomes
            )
    try:
        client = dask.Client(cluster if cluster is not None else address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        what = f"there is no Dask scheduler at {address}: {' '.join(str(error).split())}"
        hint = "start one with `dask scheduler`, or use --dask local"
        raise InputError(what, hint=hint) from None
    try:
        yield Engine(
            client.get_executor(pure=False, retries=ATTEMPTS),
            lambda: 2 * max(1, sum(client.nthreads().values())),
            (dask.KilledWorker, CancelledError, BrokenExecutor),
        )
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def run_cells(cells: Sequence[Cell], engine: Engine) -> Iterator[CellOutcome]:
    """The outcome of each cell, as they are finished."""
    waiting = deque(cells)
    running: dict[Future[CellOutcome], Cell] = {}
    lost: Counter[str] = Counter()
    while waiting or running:
        while waiting and len(running) < engine.width():
            cell = waiting.popleft()
            running[engine.executor.submit(run_cell, cell)] = cell
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            cell = running.pop(future)
            try:
                outcome = future.result()
            except engine.lost as error:
                lost[cell.digest] += 1
                if lost[cell.digest] < ATTEMPTS:
                    waiting.appendleft(cell)
                    continue
                outcome = _given_up(cell, error)
            yield outcome


def _given_up(cell: Cell, error: BaseException) -> CellOutcome:
    what = f"its worker ended {ATTEMPTS} times: {' '.join(str(error).split())}"
    names = (cell.workload.name, cell.configuration.name, cell.seed)
    return CellOutcome(cell.digest, *names, figures={}, seconds=0.0, error=what)
