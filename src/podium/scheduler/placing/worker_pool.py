"""Concurrent requests to the API server, limited in number.

Jobs start in the order they were submitted; those beyond the limit wait in a queue. Submitting
never waits, so the scheduling loop can hand over a binding and decide about the next pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

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
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def cancel(self) -> None:
        """Drop the queued jobs and cancel the running ones."""
        self._jobs.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.difference_update(tasks)  # those that had not begun
