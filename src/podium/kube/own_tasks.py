"""Tasks that must go on until their owner ends them; the death of one is not overlooked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class OwnTasks:
    """Starts tasks, and tells when one of them has ended by itself."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._died = asyncio.Event()
        self._error: BaseException | None = None

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run *work*, which must not return."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or self._error is not None:
            return
        self._error = task.exception() or RuntimeError(f"{task.get_name()} ended by itself")
        self._died.set()

    async def until_one_dies(self) -> None:
        """Wait until a task has ended by itself, and raise its exception."""
        await self._died.wait()
        assert self._error is not None
        raise self._error

    def cancel(self) -> None:
        """Cancel all tasks, which is no death."""
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        tasks = list(self._tasks)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
