"""A whole lab at full size: deployments of thousands, watched by a hundred, and a page meanwhile.

Ten watchers see every pod, as controllers do; ninety see those of one node, as kubelets do.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from lab.command.lab_process import LabProcess
from manifests import workload

pytestmark = pytest.mark.slow

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
EVERYTHING, KUBELETS = 10, 90
PAGES = ("/", "/podium/v1/cluster", "/podium/v1/pending")


class Metadata(msgspec.Struct):
    name: str


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: Metadata
    spec: Spec


class Event(msgspec.Struct):
    """No more of it than is needed: a thousand a second are read ten times."""

    object: Pod


class Clients:
    """The clients of one lab: watches of all pods, watches of one node's pods, and pages."""

    def __init__(self, lab: LabProcess, session: aiohttp.ClientSession) -> None:
        self.server = lab.told["server"]
        self.session = session
        #: Seconds that each page took while the lab was at work.
        self.took: dict[str, list[float]] = {path: [] for path in PAGES}
        #: The node of each pod, as each of those who see everything heard of it.
        self.heard: list[dict[str, str]] = [{} for _ in range(EVERYTHING)]
        #: The pods that each kubelet heard of, by node.
        self.on_node: dict[str, set[str]] = {}

    async def get(self, path: str) -> Any:
        async with self.session.get(f"{self.server}{path}") as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def deploy(self, name: str, replicas: int) -> None:
        requests = {"cpu": "100m", "memory": "64Mi"}
        container = {"name": "app", "image": "app:1", "resources": {"requests": requests}}
        body = workload("Deployment", name, replicas, {"containers": [container]})
        async with self.session.post(f"{self.server}{DEPLOYMENTS}", json=body) as response:
            assert response.status == 201, await response.text()

    async def hear_everything(self, heard: dict[str, str]) -> None:
        async for item in self._events(""):
            heard[item.metadata.name] = item.spec.node_name

    async def hear_of_one_node(self, node: str) -> None:
        heard = self.on_node.setdefault(node, set())
        async for item in self._events(f"&fieldSelector=spec.nodeName%3D{node}"):
            heard.add(item.metadata.name)

    async def _events(self, more: str) -> AsyncIterator[Pod]:
        decoder = msgspec.json.Decoder(Event)
        path = f"{self.server}/api/v1/namespaces/default/pods?watch=1{more}"
        async with self.session.get(path) as response:
            async for line in response.content:
                yield decoder.decode(line).object
        raise AssertionError("a watch has ended")

    async def look_at_pages(self) -> None:
        while True:
            for path in PAGES:
                self.took[path].append(await self.look(path))
            await asyncio.sleep(1)

    async def look(self, path: str) -> float:
        began = time.perf_counter()
        async with self.session.get(f"{self.server}{path}") as response:
            assert response.status == 200
            await response.read()
        return time.perf_counter() - began

    async def ready(self) -> int:
        found = (await self.get(DEPLOYMENTS))["items"]
        return sum(each.get("status", {}).get("readyReplicas", 0) for each in found)


async def at_work(lab: LabProcess, pods: int, seconds: float) -> dict[str, float]:
    """Create deployments and wait until all pods run; the seconds that pages took."""
    timeout = aiohttp.ClientTimeout(total=None, sock_read=seconds)
    headers = {"Authorization": f"Bearer {lab.told['token']}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, headers=headers, read_bufsize=2**20
    ) as session:
        clients = Clients(lab, session)
        nodes = [each["metadata"]["name"] for each in (await clients.get("/api/v1/nodes"))["items"]]
        kubelets = nodes[:: max(len(nodes) // KUBELETS, 1)][:KUBELETS]
        around = [
            *map(clients.hear_everything, clients.heard),
            *map(clients.hear_of_one_node, kubelets),
            clients.look_at_pages(),
        ]
        tasks = [asyncio.ensure_future(each) for each in around]
        assert len(tasks) == EVERYTHING + KUBELETS + 1
        for number in range(10):
            await clients.deploy(f"app-{number}", pods // 10)
        began = time.monotonic()
        while await clients.ready() < pods:
            assert time.monotonic() - began < seconds, await clients.ready()
            assert not any(each.done() for each in tasks), [each for each in tasks if each.done()]
            await asyncio.sleep(1)
        worked = time.monotonic() - began
        await asyncio.sleep(2)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        resting = [await clients.look(path) for path in PAGES for _ in range(3)]

    # Other programs slow down the pages and the work alike, so one is a share of the other.
    assert max(resting) * 5 < worked, resting
    for path, took in clients.took.items():
        assert statistics.median(took) * 5 < worked, (path, sorted(took))
    for heard in clients.heard:
        assert len(heard) == pods
        assert heard == clients.heard[0]
        assert all(heard.values())
    expected: dict[str, set[str]] = {node: set() for node in kubelets}
    for name, node in clients.heard[0].items():
        if node in expected:
            expected[node].add(name)
    assert clients.on_node == expected
    load = Counter(clients.heard[0].values())
    assert max(load.values()) <= 3 * pods / len(nodes)
    return {path: statistics.median(took) for path, took in clients.took.items()}


@pytest.mark.parametrize(
    ("nodes", "pods", "seconds"),
    [
        pytest.param(1_000, 10_000, 300, id="1000-nodes"),
        pytest.param(5_000, 50_000, 1200, id="5000-nodes", marks=pytest.mark.soak),
    ],
)
def test_a_hundred_watchers_and_a_page_follow_deployments_of_thousands(
    tmp_path: Path,
    nodes: int,
    pods: int,
    seconds: float,
    record_property: Callable[[str, object], None],
) -> None:
    lab = LabProcess(tmp_path, "--nodes", str(nodes), "--zones", "3")
    try:
        pages = asyncio.run(at_work(lab, pods, seconds))
    finally:
        assert lab.end() == (0, "")

    for path, median in pages.items():
        record_property(f"median seconds of {path}", f"{median:.2f}")
