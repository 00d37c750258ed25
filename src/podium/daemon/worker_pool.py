"""A bounded number of workers for an unbounded amount of work."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class Crew:
    """Does jobs in the order they come, so many at a time. Giving it one never waits."""

    def __init__(self, workers: int) -> None:
        """Nobody works before the first job; at most *workers* do so together."""
        self._limit = workers
        self._jobs: deque[Job] = deque()
        self._working = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """How many jobs are waiting or under way."""
        return len(self._jobs) + self._working

    def do(self, job: Job) -> None:
        """Have a job done."""
        self._jobs.append(job)
        if self._working < self._limit:
            self._working += 1
            self._idle.clear()
            task = asyncio.get_running_loop().create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        try:
            while self._jobs:
                job = self._jobs.popleft()
                try:
                    await job()
                except Exception:  # a bug must not take the other jobs with it
                    logger.exception("a job failed")
        finally:
            self._working -= 1
            if not self._working:
                self._idle.set()

    async def finish(self, seconds: float) -> bool:
        """Wait until everything is done; whether it was in time."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def dismiss(self) -> None:
        """Stop, whatever is left."""
        self._jobs.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
