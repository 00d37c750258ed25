"""Pauses before a request is sent again: growing ones, those of a start, and those asked for.

A watch that gets no answer waits twice as long each time, with jitter. The first requests of a
program wait a little for an API server that is not there yet. A 429 or 503 may ask for a pause with
Retry-After: the request is sent once more after a pause of at most 10 s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from podium.kube.errors import UnreachableError, refusal

if TYPE_CHECKING:
    from podium.kube.connections import Answer


def growing_pauses(
    rng: random.Random, first_seconds: float = 1.0, longest_seconds: float = 60.0
) -> Iterator[float]:
    """Seconds to wait, without end; each is between half of the doubled pause and the whole."""
    pause = first_seconds
    while True:
        yield pause * (0.5 + 0.5 * rng.random())
        pause = min(2.0 * pause, longest_seconds)


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


_TOO_MANY, _UNAVAILABLE = 429, 503
#: A longer wait than this is left to the caller, which gets the refusal.
_LONGEST_WAIT_SECONDS: Final = 10.0


async def with_asked_pause(
    send: Callable[[float], Awaitable[Answer]],
    sleep: Callable[[float], Awaitable[None]],
    timeout: float,  # noqa: ASYNC109  of both requests and the pause
) -> Answer:
    """Send a request, and again after the pause that a 429 or 503 asks for, if that is short.

    *send* is called with the seconds that the request may take.
    """
    return await after_asked_pause(await send(timeout), send, sleep, timeout)


async def after_asked_pause(
    answer: Answer,
    send: Callable[[float], Awaitable[Answer]],
    sleep: Callable[[float], Awaitable[None]],
    timeout: float,  # noqa: ASYNC109  of both requests and the pause
) -> Answer:
    """Send a request again if the first *answer* asks for a short pause before that."""
    pause = _asked(answer)
    if pause is None or pause >= timeout:
        return answer
    await sleep(pause)
    return await send(timeout - pause)


def _asked(answer: Answer) -> float | None:
    if answer.status not in {_TOO_MANY, _UNAVAILABLE}:
        return None
    pause = refusal(answer.status, answer.headers, answer.body, "").retry_after
    return pause if pause is not None and 0 <= pause <= _LONGEST_WAIT_SECONDS else None
