"""`podium run` in a large cluster on a real API server: its start, and nodes that report.

python benchmarks/bench_large_cluster.py                              5,000 nodes, 50,000 pods
python benchmarks/bench_large_cluster.py --nodes 500 --pods 5000

The nodes and pods are there before the scheduler starts. Start is the time from the start of the
program until it has bound a pod that waited, and the processor time it took for that. Then nodes
patch their status as kubelets do. What a report costs the scheduler is its processor time for each
report, and the share of a core that 500 reports a second would take; the first report of each node
costs more, since the node counts its images anew, and is told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from bench_cluster import (
    ADMIN,
    HERE,
    PODIUM,
    ControlPlane,
    assets,
    compile_modules,
    cpu_seconds,
    create,
    peak_mib,
)

from podium.kube.access import load_access
from podium.kube.client import ApiClient

#: How many reports a second the share of a core is given for.
REPORTS_PER_SECOND = 500
#: The start is measured so many times; the shortest counts.
STARTS = 3
SETTLING_SECONDS = 10
PODS = "/api/v1/namespaces/default/pods"


def conditions(beat: int) -> list[dict[str, str]]:
    """The conditions of a node, as a kubelet reports them."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + beat))
    states = {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    return [
        {
            "type": name,
            "status": status,
            "reason": f"Kubelet{name}",
            "message": f"kubelet says {status} of {name}",
            "lastHeartbeatTime": at,
            "lastTransitionTime": "2023-11-14T00:00:00Z",
        }
        for name, status in states.items()
    ]


def node(number: int) -> dict[str, Any]:
    """A node with addresses, conditions and images, as many as real ones have."""
    name = f"node-{number:05d}"
    room = {"cpu": "32", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"m{number % 4}.large",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
    }
    images = [
        {
            "names": [f"example/image-{each}@sha256:{each:064x}", f"example/image-{each}:v1"],
            "sizeBytes": 10_000_000 + each,
        }
        for each in range(number % 7, 50, 2)
    ]
    status = {
        "capacity": room,
        "allocatable": room,
        "conditions": conditions(0),
        "addresses": [{"type": "Hostname", "address": name}],
        "images": images,
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": status,
    }


def pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod of one of some hundred applications, on a node already; without nodes it waits."""
    application = f"app-{number % 700}"
    requests = {"cpu": f"{100 + number % 5 * 50}m", "memory": f"{100 + number % 7 * 50}Mi"}
    container = {
        "name": "main",
        "image": f"example/image-{number % 50}:v1",
        "resources": {"requests": requests, "limits": requests},
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(5)],
        "ports": [{"containerPort": 8080}],
    }
    spec = {"schedulerName": "benchmark", "containers": [container]}
    if nodes:
        spec["nodeName"] = f"node-{number % nodes:05d}"
    labels = {
        "app": application,
        "tier": f"tier-{number % 3}",
        "pod-template-hash": f"{number % 700:08x}",
    }
    return {"metadata": {"name": f"{application}-{number:05d}", "labels": labels}, "spec": spec}


async def report(client: ApiClient, nodes: int, first: int, count: int) -> float:
    """Let nodes report their status, at most 500 of them a second; returns the seconds it took.

    Reports are numbered from *first* on, so that each of a node differs from the one before.
    """
    begun, sent = time.monotonic(), 0
    patch = "application/strategic-merge-patch+json"

    async def work() -> None:
        nonlocal sent
        while sent < count:
            if sent >= REPORTS_PER_SECOND * (time.monotonic() - begun):
                await asyncio.sleep(0.01)
                continue
            number, sent = first + sent, sent + 1
            body = msgspec.json.encode({"status": {"conditions": conditions(number)}})
            path = f"/api/v1/nodes/node-{number % nodes:05d}/status"
            await client.request("PATCH", path, body=body, content_type=patch)

    await asyncio.gather(*(work() for _ in range(16)))
    return time.monotonic() - begun


async def measure(plane: ControlPlane, nodes: int, pods: int, seconds: float) -> dict[str, Any]:
    """Fill the cluster, start the scheduler, and let nodes report."""
    async with ApiClient(load_access(plane.kubeconfig(ADMIN))) as client:
        await create(client, "/api/v1/nodes", (node(i) for i in range(nodes)))
        await create(client, PODS, tick(pod(i, nodes) for i in range(pods)))
        found = {"nodes": nodes, "pods": pods}
        starts = [await started(client, plane, pods + each) for each in range(STARTS)]
        found |= min(starts, key=lambda each: each["start (s)"])
        process = begin(plane)
        try:
            await asyncio.sleep(SETTLING_SECONDS)
            reports = round(seconds * REPORTS_PER_SECOND)
            before = cpu_seconds(process.pid)
            await report(client, nodes, 0, nodes)
            await asyncio.sleep(1)
            between = cpu_seconds(process.pid)
            passed = await report(client, nodes, nodes, reports)
            await asyncio.sleep(1)
            cost = (cpu_seconds(process.pid) - between) / reports
        finally:
            end(process)
        return {
            **found,
            "reports/s": round(reports / passed),
            "CPU ms/first report": round((between - before) / nodes * 1000, 3),
            "CPU ms/report": round(cost * 1000, 3),
            "% of a core": round(cost * REPORTS_PER_SECOND * 100, 1),
        }


async def started(client: ApiClient, plane: ControlPlane, number: int) -> dict[str, float]:
    """How long a start takes, until a pod that waited is bound."""
    waiting = pod(number, 0)
    await create(client, PODS, iter([waiting]))
    path = f"{PODS}/{waiting['metadata']['name']}"
    begun = time.monotonic()
    process = begin(plane)
    try:
        while "nodeName" not in (await client.get(path))["spec"]:  # noqa: ASYNC110  it is polled
            await asyncio.sleep(0.02)
        return {
            "start (s)": round(time.monotonic() - begun, 2),
            "start, CPU (s)": round(cpu_seconds(process.pid), 2),
            "peak MiB": round(peak_mib(process.pid)),
        }
    finally:
        end(process)


def begin(plane: ControlPlane) -> subprocess.Popen[bytes]:
    """Start the scheduler."""
    command = shlex.split(PODIUM.format(kubeconfig=plane.kubeconfig(ADMIN)))
    with (plane.folder / "scheduler.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=HERE.parent)  # noqa: S603  our own program


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop the scheduler."""
    process.terminate()
    process.wait(30)


def tick(objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same objects, with a line of progress for every 5,000."""
    for number, each in enumerate(objects):
        if number and number % 5000 == 0:
            print(f"{number} pods …", file=sys.stderr)
        yield each


def main() -> None:
    """Measure what the command line asks for; figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    given = parser.parse_args()
    compile_modules()
    nodes, pods = (50, 200) if given.quick else (given.nodes, given.pods)
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(assets(), Path(folder))
        plane.start()
        try:
            found = asyncio.run(measure(plane, nodes, pods, 2.0 if given.quick else given.seconds))
        finally:
            plane.stop()
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
