"""The tasks of pods that are in a stage between their decision and their binding."""

from __future__ import annotations

import asyncio
import enum
import logging
from typing import TYPE_CHECKING, Any

from podium.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class Stage(enum.Enum):
    """What happens to a pod between its decision and its end on a node."""

    PRE_BIND = enum.auto()
    VOLUMES = enum.auto()
    BIND = enum.auto()


class StageError(Exception):
    """The pod must not be bound; the text says why."""


class StageTasks:
    """Runs one task per pod; every task ends by telling its outcome."""

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

    def begin_stage(
        self, what: str, work: Coroutine[Any, Any, None], done: Callable[[str], None]
    ) -> None:
        """Start a task that calls *done* at its end with the error, "" for none."""
        self.begin(_ended(what, work, done))

    async def cancel(self) -> None:
        """Cancel all tasks, and wait until they ended; no outcome is told."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ended(what: str, work: Coroutine[Any, Any, None], done: Callable[[str], None]) -> None:
    try:
        await work
    except (StageError, ApiError) as error:
        done(str(error))
    except Exception as bug:
        # Without an end the pod would stay assumed for ever.
        logger.exception("%s", what)
        done(f"{type(bug).__name__}: {bug}")
    else:
        done("")
