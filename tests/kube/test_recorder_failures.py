"""Events that cannot be written are told of, once."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from podium.kube.api import KubeApi
from podium.kube.errors import UnreachableError
from podium.kube.events import Reference
from podium.kube.recorder import EventRecorder


class Unreachable(KubeApi):
    """Answers nothing."""

    def __init__(self) -> None:
        self.asked = 0

    async def request(self, *_: Any, **__: Any) -> bytes:
        self.asked += 1
        raise UnreachableError("connection refused")

    def stream(self, *_: Any, **__: Any) -> AbstractAsyncContextManager[Any]:
        raise UnreachableError("connection refused")


async def at_once(seconds: float) -> None:
    """Pass pauses over, but for the six minutes between two sweeps."""
    await asyncio.sleep(0 if seconds < 60 else 3600)


async def test_an_event_that_is_given_up_is_told_of_once() -> None:
    api = Unreachable()
    told: list[str] = []

    async with EventRecorder(api, "podium", warn=told.append, sleep=at_once) as recorder:
        for number in range(5):
            about = Reference("Pod", "default", f"p-{number}", f"u-{number}")
            recorder.record(about, "Normal", "Scheduled", "here")
        assert await recorder.drain(60)
        assert recorder.counts == {"failed": 5}
    assert api.asked == 5 * 12
    assert told == ["an event could not be written: connection refused; it was tried 12 times"]


async def test_events_that_find_no_room_are_told_of_once() -> None:
    told: list[str] = []

    recorder = EventRecorder(Unreachable(), "podium", most=2, warn=told.append)
    for number in range(9):
        about = Reference("Pod", "default", f"p-{number}", f"u-{number}")
        recorder.record(about, "Normal", "Scheduled", "here")
    assert recorder.counts["dropped"] == 7
    recorder.abandon()
    recorder.record(about, "Normal", "Scheduled", "here")
    assert told == ["events are dropped: 2 wait to be written"]
