"""Supervision of the tasks that a program cannot do without.

A task that dies must end the program: while the HTTP server answers, a scheduler with a dead loop
looks alive. `Supervisor.until` therefore waits for a condition and for the death of any task at the
same time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from podium.errors import PodiumError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine


class TaskDiedError(PodiumError):
    """A task has ended that the program cannot do without."""

    def __init__(self, name: str, cause: PodiumError | None) -> None:
        """Name the task, and the error that ended it; without one it has just returned."""
        self.exit_code = cause.exit_code if cause is not None else 1
        why = f": {cause}" if cause is not None else " unexpectedly"
        super().__init__(f"{name} stopped{why}")


class Supervisor:
    """Starts tasks, and reports the first one that dies."""

    def __init__(self) -> None:
        #: Task -> its name, and whether it may return.
        self._tasks: dict[asyncio.Task[None], tuple[str, bool]] = {}

    def start(
        self, name: str, work: Coroutine[Any, Any, None], *, may_return: bool = False
    ) -> asyncio.Task[None]:
        """Run *work* as a task; unless it *may_return*, its end is a failure like an exception."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = (name, may_return)
        return task

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Cancel a task and wait for its end, which is no failure any more."""
        task.cancel()
        await self.release(task)

    async def release(self, task: asyncio.Task[None]) -> None:
        """Wait for the end of a task, however it ends, and supervise it no longer."""
        self._tasks.pop(task, None)
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # its failure was reported by `until`, if there was one

    async def until(self, *conditions: Awaitable[Any]) -> None:
        """Wait until one of the conditions holds; raise the failure of the first task that dies.

        An error that Podium raises on purpose becomes a `TaskDiedError` with the name of the task.
        Any other exception is a bug, and is raised as it is.
        """
        waiting = {asyncio.ensure_future(each) for each in conditions}
        own = waiting - self._tasks.keys()
        try:
            while True:
                await asyncio.wait({*waiting, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
                self._raise_failure()
                if any(each.done() for each in waiting):
                    return
        finally:
            for each in own:
                each.cancel()

    def _raise_failure(self) -> None:
        for task in [task for task in self._tasks if task.done()]:
            name, may_return = self._tasks.pop(task)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, PodiumError):
                raise TaskDiedError(name, error) from error
            if error is not None:
                raise error
            if not may_return or task.cancelled():
                raise TaskDiedError(name, None)
