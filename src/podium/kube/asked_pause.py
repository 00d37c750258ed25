"""The pause that an API server asks for with Retry-After: once, if it is short, then once more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from podium.kube.connections import Answer
from podium.kube.errors import refusal

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
