"""The scheduler itself, without an API server: what it counts, and what it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from daemon.fakes import PROFILES, Events, cluster
from podium.daemon.scheduler import Scheduler
from podium.daemon.volumes import VolumeBinder


def test_tasks_of_a_former_configuration_are_counted_and_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []

    async def bind_slowly(*_: object) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")

    monkeypatch.setattr(VolumeBinder, "_run", bind_slowly)
    profile, _ = PROFILES["v1.36"]
    _, result = cluster().attempt(node="n1")

    async def run() -> None:
        client: Any = None
        scheduler = Scheduler(client, [profile], recorder=Events())
        scheduler._actions.volumes.start(result, lambda _: None)
        await asyncio.sleep(0)

        await scheduler.reconfigure([profile])
        await scheduler.reconfigure([profile])

        assert scheduler.binding == 1
        await scheduler._drain()
        assert scheduler.binding == 0
        assert ended == ["cancelled"]

    asyncio.run(run())
