"""The tasks beside the scheduling loop: stages of pods before their binding, and requests.

Jobs of a pool start in the order they were submitted; those beyond the limit wait in a queue.
Submitting never waits, so the scheduling loop can hand over a binding and decide about the next
pod.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from podium.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Coroutine

logger = logging.getLogger(__name__)


class Stage(enum.Enum):
    """What happens to a pod between its decision and its end on a node."""

    PRE_BIND = enum.auto()
    VOLUMES = enum.auto()
    BIND = enum.auto()


class StageError(Exception):
    """The pod must not be bound; the text says why."""


class StageTasks:
    """Runs tasks that end by themselves."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of tasks that have not ended."""
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cancel(self) -> None:
        """Cancel all tasks, and wait until they ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def error_of(what: str, work: Awaitable[None]) -> str:
    """The error of a stage, "" for none; an exception is logged with *what* was done."""
    try:
        await work
    except (StageError, ApiError) as error:
        return str(error)
    except Exception as bug:
        # Without an end the pod would stay assumed for ever.
        logger.exception("%s", what)
        return f"{type(bug).__name__}: {bug}"
    return ""


Job = Callable[[], Awaitable[None]]


class WorkerPool:
    """Runs jobs on at most *workers* tasks at a time; tasks exist only while there are jobs."""

    def __init__(self, workers: int) -> None:
        self._limit = workers
        self._jobs: deque[Job] = deque()
        self._workers = 0
        #: How many of the workers have a job; a new worker takes one when its task starts.
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        #: What a `drain` under way waits for.
        self._draining: asyncio.Task[Any] | None = None

    def __len__(self) -> int:
        """The number of jobs that are queued or running."""
        return len(self._jobs) + self._running

    def submit(self, job: Job) -> None:
        """Queue a job, and start a worker for it if fewer than the limit are running."""
        self._jobs.append(job)
        if self._workers < self._limit:
            self._workers += 1
            self._idle.clear()
            self._tasks.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        task, jobs = asyncio.current_task(), self._jobs
        assert task is not None
        try:
            while jobs:
                job = jobs.popleft()
                self._running += 1
                try:
                    await job()
                except Exception:  # a bug in one job must not stop the other jobs
                    logger.exception("a job failed")
                finally:
                    self._running -= 1
        finally:
            self._tasks.discard(task)
            self._workers -= 1
            if not self._workers:
                self._idle.set()

    async def drain(self, seconds: float) -> bool:
        """Wait until all jobs have ended; False if some have not after *seconds*."""
        if self._idle.is_set():
            return True
        waiting = self._draining = asyncio.get_running_loop().create_task(self._idle.wait())
        try:
            await asyncio.wait({waiting}, timeout=seconds)
        finally:
            waiting.cancel()
            self._draining = None
        return self._idle.is_set()

    def end_drain(self) -> None:
        """Let a `drain` under way wait no longer."""
        if self._draining is not None:
            self._draining.cancel()

    async def cancel(self) -> None:
        """Drop the queued jobs and cancel the running ones."""
        self._jobs.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.difference_update(tasks)  # those that had not begun
