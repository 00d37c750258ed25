"""Many objects and many watches: every watch gets every event in order, and lists are whole."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.serving import node, pod
from waiting import until

pytestmark = pytest.mark.slow

WRITERS = 8


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server in a process of its own."""
    port = tmp_path / "port"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = Path(__file__).parents[1] / "server_process.py"
    process = subprocess.Popen([sys.executable, script, port], env=environment)
    try:
        found = until("a port", lambda: port.exists() and port.read_text("utf-8"))
        yield f"http://127.0.0.1:{found}"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)


class Load:
    """Writers and watchers on one server."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.session = session
        self.address = address

    async def get(self, path: str) -> Any:
        async with self.session.get(f"{self.address}{path}") as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def create(self, path: str, items: Iterator[Any]) -> None:
        async def write() -> None:
            for item in items:
                async with self.session.post(f"{self.address}{path}", json=item) as response:
                    assert response.status == 201, await response.text()
                    await response.read()

        await asyncio.gather(*(write() for _ in range(WRITERS)))

    async def watch(self, path: str, count: int) -> list[str]:
        """The names of the first *count* events, as they come."""
        seen: list[str] = []
        async with self.session.get(f"{self.address}{path}") as response:
            async for line in response.content:
                event = json.loads(line)
                assert event["type"] == "ADDED", line
                seen.append(event["object"]["metadata"]["name"])
                if len(seen) == count:
                    break
        return seen

    async def count(self, path: str, count: int) -> int:
        """How many lines came, without reading them: there is one processor for all of this."""
        seen = 0
        async with self.session.get(f"{self.address}{path}") as response:
            while seen < count:
                part = await response.content.readany()
                assert part, f"the watch ended after {seen} events"
                seen += part.count(b"\n")
        return seen


async def loaded(address: str, nodes: int, pods: int, watchers: int) -> None:
    timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        load = Load(session, address)
        await load.create("/api/v1/nodes", (node(f"n{each}") for each in range(nodes)))
        version = (await load.get("/api/v1/nodes?limit=1"))["metadata"]["resourceVersion"]
        path = f"/api/v1/pods?watch=1&resourceVersion={version}"
        careful = asyncio.create_task(load.watch(path, pods))
        others = [asyncio.create_task(load.count(path, pods)) for _ in range(watchers - 1)]

        await load.create(
            "/api/v1/namespaces/default/pods", (pod(f"p{each}") for each in range(pods))
        )
        seen = await careful
        counts = await asyncio.gather(*others)

        assert set(counts) == {pods}
        assert sorted(seen) == sorted(f"p{each}" for each in range(pods))
        found: list[str] = []
        again = ""
        while True:
            page = await load.get(f"/api/v1/pods?limit=500&continue={again}")
            found += [each["metadata"]["name"] for each in page["items"]]
            again = page["metadata"].get("continue", "")
            if not again:
                break
        assert found == sorted(f"p{each}" for each in range(pods))


def test_a_hundred_watchers_hear_of_ten_thousand_pods(address: str) -> None:
    asyncio.run(loaded(address, nodes=1000, pods=10_000, watchers=100))


@pytest.mark.soak
def test_a_hundred_watchers_hear_of_fifty_thousand_pods(address: str) -> None:
    asyncio.run(loaded(address, nodes=5000, pods=50_000, watchers=100))
