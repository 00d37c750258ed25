"""A sink that remembers, and a way to wait for what it should come to know."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from podium.kube.access import load_access
from podium.kube.client import ApiClient
from podium.kube.reflector import Reflector
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Known:
    """All objects of a collection, by name, and what was told of them."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.told: list[str] = []
        self.replaced = 0
        self.dropped: list[str] = []

    def replace(self, items: list[Any]) -> None:
        self.objects = {item.name: item for item in items}
        self.replaced += 1

    def put(self, item: Any) -> None:
        self.objects[item.name] = item

    def drop(self, item: Any) -> None:
        del self.objects[item.name]
        self.dropped.append(item.name)


@asynccontextmanager
async def following(
    client: ApiClient, path: str = PODS, kind: type[Object] = Pod, **options: Any
) -> AsyncIterator[tuple[Known, Reflector[Any]]]:
    """A reflector that runs, and what it tells."""
    known = Known()
    settings: dict[str, Any] = {"first_pause": 0.01, "rng": random.Random(1)}  # noqa: S311
    decoder = msgspec.json.Decoder(kind)
    reflector = Reflector(
        client, path, decoder, known, warn=known.told.append, **(settings | options)
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield known, reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def connected(kubeconfig: Path, **options: Any) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_access(kubeconfig), **options) as client:
        yield client
    await asyncio.sleep(0.01)  # so that what was aborted is closed
