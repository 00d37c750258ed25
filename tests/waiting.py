"""Waiting for something that no event tells: for another program, or in the loop of the test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def until(what: str, found: Callable[[], _T], seconds: float = 60, pause: float = 0.05) -> _T:
    """What is found, as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(pause)
    return value


async def eventually(found: Callable[[], Any], seconds: float = 60) -> None:
    """Let other tasks run until something is true."""
    async with asyncio.timeout(seconds):
        while not found():  # noqa: ASYNC110  what is waited for knows of no event
            await asyncio.sleep(0.005)
