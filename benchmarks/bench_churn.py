"""What grows while pods come and go for a long time, on `podium run` and on `podium lab`.

python benchmarks/bench_churn.py                     ten minutes on each
python benchmarks/bench_churn.py --seconds 120       another length
python benchmarks/bench_churn.py --program lab       one of them alone

What is kept of the past is filled first: as many pods as that takes are created and deleted as fast
as can be. Then so many pods are created each second, and each is deleted once 500 are there. The
first, the fifth and the last tenth of the time are compared: memory and descriptors of the program
at the end of each, its processor time per pod, and the time from the creation of a pod to the watch
event with its node. `podium run` schedules for a real API server, which shares this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

import msgspec  # noqa: E402  the path comes first
import numpy as np  # noqa: E402
from bench_cluster import NAME, PODIUM, cpu_seconds, create, node, pod  # noqa: E402

from control_plane.harness import ADMIN, ControlPlane, assets  # noqa: E402
from podium.kube.access import load_access  # noqa: E402
from podium.kube.client import ApiClient  # noqa: E402

SECONDS, RATE, NODES = 600.0, 50.0, 100
#: How many pods there are at a time, and how many requests for them are under way.
LIVE, WRITERS = 500, 16
#: After so many pods, decisions, histories and Events are as many as are kept.
FILLING = 25_000
PODS = "/api/v1/namespaces/default/pods"
LAB = f"{sys.executable} -m podium lab --listen 127.0.0.1:0 --nodes {NODES}"


@contextmanager
def running(command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Podium, which is stopped at the end."""
    with log.open("wb") as file:
        process = subprocess.Popen(command.split(), stdout=file, stderr=file, cwd=HERE.parent)  # noqa: S603  our own
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def of_run(folder: Path) -> Iterator[tuple[Path, int]]:
    """A real API server with nodes, and `podium run`: the kubeconfig and the process."""
    plane = ControlPlane(assets(), folder)
    plane.start()
    try:
        kubeconfig = plane.kubeconfig(ADMIN)

        async def fill() -> None:
            async with ApiClient(load_access(kubeconfig)) as client:
                await create(client, "/api/v1/nodes", (node(i) for i in range(NODES)))

        asyncio.run(fill())
        command = PODIUM.format(kubeconfig=kubeconfig)
        with running(command, folder / "scheduler.log") as process:
            yield Path(kubeconfig), process.pid
    finally:
        plane.stop()


@contextmanager
def of_lab(folder: Path) -> Iterator[tuple[Path, int]]:
    """`podium lab`: the kubeconfig and the process."""
    kubeconfig = folder / "kubeconfig"
    command = f"{LAB} --write-kubeconfig {kubeconfig}"
    with running(command, folder / "lab.log") as process:
        deadline = time.monotonic() + 120
        while not kubeconfig.exists() or not kubeconfig.stat().st_size:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((folder / "lab.log").read_text("utf-8"))
            time.sleep(0.1)
        yield kubeconfig, process.pid


PROGRAMS = {"run": of_run, "lab": of_lab}


class Churn:
    """Creates and deletes pods at a rate, and notes how long each takes to get a node."""

    def __init__(self, client: ApiClient, pid: int, scheduler: str) -> None:
        self._client, self._pid, self._scheduler = client, pid, scheduler
        self._created: dict[str, float] = {}
        self._live: deque[str] = deque()
        self._latencies: list[float] = []
        self._number = 0
        self._used_seconds = 0.0
        #: Set when the last pod that waited has got its node.
        self._all_placed = asyncio.Event()

    async def run(self, seconds: float, rate: float, filling: int) -> dict[str, Any]:
        """The figures of the first, the fifth and the last tenth of the time."""
        watching = asyncio.ensure_future(self._watch())
        part = seconds / 10
        tenths: list[dict[str, Any]] = []
        try:
            await self._until_it_schedules(watching)
            await self._fill(filling)
            self._figures()
            began = time.monotonic()
            for tenth in range(10):
                await self._during(began + tenth * part, part, rate)
                tenths.append(self._figures())
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        compared = {"first": tenths[0], "fifth": tenths[4], "last": tenths[-1]}
        return {"seconds": seconds, "filled": filling, "created": self._number, **compared}

    async def _until_it_schedules(self, watching: asyncio.Task[None]) -> None:
        """Wait for the first pod to get a node."""
        await asyncio.sleep(1)  # the watch comes first
        await self._one(self._number)
        self._number += 1
        for _ in range(1200):
            if self._latencies or watching.done():
                break
            await asyncio.sleep(0.1)
        self._latencies.clear()

    async def _fill(self, pods: int) -> None:
        """Create and delete so many pods as fast as they get their nodes."""
        last = self._number + pods

        async def work() -> None:
            while self._number < last:
                number, self._number = self._number, self._number + 1
                await self._one(number)
                if len(self._created) > LIVE // 2:
                    self._all_placed.clear()
                    await self._all_placed.wait()

        await asyncio.gather(*(work() for _ in range(WRITERS)))
        self._all_placed.clear()
        if self._created:
            await self._all_placed.wait()

    async def _during(self, began: float, seconds: float, rate: float) -> None:
        """Create pods at a rate; one that is late does not delay those after it."""
        first, places = self._number, asyncio.Semaphore(WRITERS)
        tasks: set[asyncio.Task[None]] = set()
        while time.monotonic() < began + seconds:
            due = began + (self._number - first) / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await places.acquire()
            task = asyncio.ensure_future(self._one(self._number))
            tasks.add(task)
            task.add_done_callback(lambda done: (tasks.discard(done), places.release()))
            self._number += 1
        await asyncio.gather(*tasks)

    async def _one(self, number: int) -> None:
        """Create a pod, and delete the oldest if there are enough."""
        made = pod(number, "churn")
        made["spec"]["schedulerName"] = self._scheduler
        name = made["metadata"]["name"]
        self._created[name] = time.monotonic()
        await self._client.request("POST", PODS, body=msgspec.json.encode(made))
        self._live.append(name)
        if len(self._live) > LIVE:
            at_once, oldest = msgspec.json.encode({"gracePeriodSeconds": 0}), self._live.popleft()
            self._created.pop(oldest, None)  # it may have got no node
            await self._client.request("DELETE", f"{PODS}/{oldest}", body=at_once)

    async def _watch(self) -> None:
        """Note when pods get their nodes."""
        version = (await self._client.get(PODS, {"limit": "1"}))["metadata"]["resourceVersion"]
        while True:
            params = {"watch": "1", "resourceVersion": version}
            async with self._client.stream(PODS, params, idle_seconds=120) as pieces:
                rest = b""
                async for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        version = self._seen(msgspec.json.decode(line)["object"])

    def _seen(self, seen: dict[str, Any]) -> str:
        """Note the time of a pod that has its node now; the version of the pod."""
        name = seen["metadata"]["name"]
        if seen["spec"].get("nodeName") and name in self._created:
            self._latencies.append(time.monotonic() - self._created.pop(name))
            if not self._created:
                self._all_placed.set()
        return str(seen["metadata"]["resourceVersion"])

    def _figures(self) -> dict[str, Any]:
        """What there is to tell of the pods since the last call, and of the program now."""
        number, milliseconds = len(self._latencies), np.array(self._latencies or [0.0]) * 1000
        self._latencies.clear()
        status = Path(f"/proc/{self._pid}/status").read_text("utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        before, self._used_seconds = self._used_seconds, cpu_seconds(self._pid)
        return {
            "pods": number,
            "CPU-ms per pod": round((self._used_seconds - before) * 1000 / max(number, 1), 2),
            "p50 ms": round(float(np.percentile(milliseconds, 50)), 1),
            "p99 ms": round(float(np.percentile(milliseconds, 99)), 1),
            "memory MiB": round(int(found[1]) / 1024, 1) if found else 0.0,
            "descriptors": len(list(Path(f"/proc/{self._pid}/fd").iterdir())),
        }


def measured(program: str, seconds: float, rate: float, filling: int) -> dict[str, Any]:
    """The figures of one program."""

    async def churn(kubeconfig: Path, pid: int) -> dict[str, Any]:
        async with ApiClient(load_access(kubeconfig)) as client:
            scheduler = NAME if program == "run" else "default-scheduler"
            return await Churn(client, pid, scheduler).run(seconds, rate, filling)

    with tempfile.TemporaryDirectory() as folder, PROGRAMS[program](Path(folder)) as started:
        found = asyncio.run(churn(*started))
    print(program, found, file=sys.stderr)
    return found


def main() -> None:
    """Measure what the command line asks for; figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, help=f"how long; {SECONDS:g} if not given")
    parser.add_argument("--rate", type=float, default=RATE, help="pods per second")
    parser.add_argument("--filling", type=int, help=f"pods before that; {FILLING} if not given")
    parser.add_argument("--program", choices=PROGRAMS, action="append")
    parser.add_argument("--quick", action="store_true", help="ten seconds, to see that it works")
    given = parser.parse_args()
    seconds = given.seconds or (10.0 if given.quick else SECONDS)
    filling = given.filling if given.filling is not None else (100 if given.quick else FILLING)
    programs = given.program or list(PROGRAMS)
    found = {name: measured(name, seconds, given.rate, filling) for name in programs}
    json.dump({"pods per second": given.rate, "programs": found}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
