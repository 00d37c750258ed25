"""The first requests of a program: an API server that is not there yet is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from podium.kube.errors import UnreachableError

_T = TypeVar("_T")

#: Seconds before asking again when no answer came.
PAUSES: Final = (0.2, 0.5, 1.0)
#: The same for programs that run on: an API server that restarts is there again in a minute.
RESTART_PAUSES: Final = (*PAUSES, *(2.0,) * 29)


async def answered(
    ask: Callable[[], Awaitable[_T]],
    pauses: Iterable[float],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    failed: Callable[[UnreachableError], None] | None = None,
) -> _T:
    """The answer to *ask*, which is called again after each pause while no answer comes.

    *failed* is told of each error but the last one, which is raised.
    """
    for pause in pauses:
        try:
            return await ask()
        except UnreachableError as error:
            if failed is not None:
                failed(error)
            await sleep(pause)
    return await ask()
