"""A scheduler against a real API server: pods per second, processor time per pod, memory.

python benchmarks/bench_cluster.py                                       podium run
python benchmarks/bench_cluster.py --scheduler kube-scheduler            that of the control plane
python benchmarks/bench_cluster.py --scheduler CMD                       any other scheduler
python benchmarks/bench_cluster.py --workload basic --nodes 1000 --pods 5000

Control plane and scheduler share this machine. Nodes and pods are created beforehand; the clock
runs from the first binding that the API server counts to the last. In CMD, `{kubeconfig}` stands
for the file to use and `{folder}` for one that may be written to. At the end every pod must have a
node, and no node more than it can take.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

import msgspec  # noqa: E402  the path comes first

from control_plane.harness import ADMIN, ControlPlane, assets  # noqa: E402
from podium.kube.access import load_access  # noqa: E402
from podium.kube.client import ApiClient  # noqa: E402
from podium.objects.quantity import milli  # noqa: E402

NAME = "benchmark"
PODIUM = (
    f"{sys.executable} -m podium run --kubeconfig {{kubeconfig}} --scheduler-name {NAME} "
    "--port 0 --leader-elect=false"
)
#: The scheduler of the control plane, with its client limits raised.
KUBE_SCHEDULER = (
    "{programs}/kube-scheduler --kubeconfig={kubeconfig} --scheduler-name=benchmark "
    "--kube-api-qps=5000 --kube-api-burst=5000 --leader-elect=false --port=0 --secure-port=0"
)
_BOUND = re.compile(
    r'^apiserver_request_total\{[^}]*code="201"[^}]*subresource="binding"[^}]*\} ([0-9.e+]+)$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Workload:
    """How many nodes, how many pods, and what kind of them."""

    name: str
    nodes: int
    pods: int
    #: What must be reached: pods per second, milliseconds of processor time per pod, MiB.
    targets: tuple[float, float, float]


WORKLOADS = (
    Workload("basic", 1000, 5000, (430.0, 1.34, 300.0)),
    Workload("large", 5000, 5000, (333.0, 1.7, 300.0)),
    Workload("anti-affinity", 1000, 3000, (181.0, 3.15, 300.0)),
)


def node(number: int) -> dict[str, Any]:
    """A node of the usual size."""
    name = f"node-{number:05d}"
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"capacity": room, "allocatable": room, "conditions": conditions}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(number: int, workload: str) -> dict[str, Any]:
    """A pod that wants little; with anti-affinity, no other of its kind on the same node."""
    requests = {"cpu": "100m", "memory": "200Mi"}
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"schedulerName": NAME, "containers": [container]}
    # As many kinds as there are pods for each node, so that all of them fit.
    color = f"color-{number % 6}" if workload == "anti-affinity" else "plain"
    if workload == "anti-affinity":
        selector = {"matchLabels": {"color": color}}
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    metadata = {"name": f"pod-{number:05d}", "labels": {"color": color}}
    return {"metadata": metadata, "spec": spec}


async def create(client: ApiClient, path: str, objects: Iterator[dict[str, Any]]) -> None:
    """Create objects, some at a time, in about their order."""

    async def work() -> None:
        for each in objects:
            await client.request("POST", path, body=msgspec.json.encode(each))

    await asyncio.gather(*(work() for _ in range(16)))


async def bound(client: ApiClient) -> int:
    """How many bindings the API server has answered with success."""
    text = (await client.request("GET", "/metrics")).decode()
    return sum(int(float(number)) for number in _BOUND.findall(text))


def cpu_seconds(pid: int) -> float:
    """Processor time that a program has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peak_mib(pid: int) -> float:
    """The most memory that a program has had."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


async def measure(plane: ControlPlane, workload: Workload, command: str) -> dict[str, Any]:
    """Run the scheduler until every pod has a node."""
    kubeconfig = plane.kubeconfig(ADMIN)
    async with ApiClient(load_access(kubeconfig)) as client:
        await create(client, "/api/v1/nodes", (node(i) for i in range(workload.nodes)))
        path = "/api/v1/namespaces/default/pods"
        await create(client, path, (pod(i, workload.name) for i in range(workload.pods)))
        before = await bound(client)
        started = time.monotonic()
        log = (plane.folder / "scheduler.log").open("wb")
        process = subprocess.Popen(  # noqa: S603, ASYNC220  what we were told to run
            shlex.split(command), stdout=log, stderr=log, cwd=HERE.parent
        )
        try:
            found = await watch(client, process, workload, before)
        finally:
            process.terminate()
            process.wait(30)
            log.close()
        found["events"] = await events(client)
        found["until the first (s)"] = round(found.pop("first") - started, 2)
        await check(client, path, workload)
        return found


async def watch(
    client: ApiClient, process: subprocess.Popen[bytes], workload: Workload, before: int
) -> dict[str, Any]:
    """Look at the API server's count until it is complete."""
    pid = process.pid
    samples: list[tuple[float, int, float]] = []
    deadline = time.monotonic() + 600
    while True:
        count = await bound(client) - before
        if process.poll() is None:
            samples.append((time.monotonic(), count, cpu_seconds(pid)))
        if count >= workload.pods:
            break
        if process.poll() is not None:
            raise RuntimeError(f"the scheduler ended with {process.returncode}, {count} pods bound")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} of {workload.pods} pods were bound in ten minutes")
        await asyncio.sleep(0.25)
    idle = [sample for sample in samples if sample[1] == 0]
    first = idle[-1] if idle else samples[0]
    last = samples[-1]
    seconds, cpu = last[0] - first[0], await settled(client, pid)
    return {
        "first": first[0],
        "pods/s": round((last[1] - first[1]) / seconds, 1),
        "CPU ms/pod": round(cpu * 1000 / workload.pods, 3),
        "CPU ms/pod while binding": round((cpu - first[2]) * 1000 / workload.pods, 2),
        "peak MiB": round(peak_mib(pid)),
    }


async def settled(client: ApiClient, pid: int) -> float:
    """Processor time when all is said about the last pods, which costs as well.

    On a busy machine the scheduler waits longer than a second for its events to be written.
    """
    before = -1.0, -1
    while True:
        now = cpu_seconds(pid), await events(client)
        if now[0] <= before[0] + 0.02 and now[1] == before[1]:
            return now[0]
        before = now
        await asyncio.sleep(1)


async def events(client: ApiClient) -> int:
    """How many events there are."""
    found = await client.get("/api/v1/namespaces/default/events", {"limit": "1"})
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


async def check(client: ApiClient, path: str, workload: Workload) -> None:
    """Every pod has a node, and no node has more than it can take."""
    pods = (await client.get(path))["items"]
    nodes = (await client.get("/api/v1/nodes"))["items"]
    room = {each["metadata"]["name"]: each["status"]["allocatable"] for each in nodes}
    used: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    for each in pods:
        where = each["spec"].get("nodeName")
        assert where in room, f"{each['metadata']['name']} has no node"
        used[where] += milli(each["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        kinds[where, each["metadata"]["labels"]["color"]] += 1
    assert len(pods) == workload.pods
    assert all(used[name] <= milli(room[name]["cpu"]) for name in used), "a node is too full"
    if workload.name == "anti-affinity":
        assert max(kinds.values()) == 1, "pods of a kind are together"


def compile_modules() -> None:
    """Compile Podium's modules, as an installation does, so that a start does not have to."""
    compileall.compile_dir(HERE.parent / "src", quiet=1)


def run(workload: Workload, command: str) -> dict[str, Any]:
    """One workload on a control plane of its own."""
    with tempfile.TemporaryDirectory() as folder:
        programs = assets()
        plane = ControlPlane(programs, Path(folder))
        plane.start()
        try:
            kubeconfig = plane.kubeconfig(ADMIN)
            filled = command.format(kubeconfig=kubeconfig, folder=folder, programs=programs)
            return asyncio.run(measure(plane, workload, filled))
        finally:
            plane.stop()


def main() -> None:
    """Measure what the command line asks for; figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workload", choices=names, action="append")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--pods", type=int)
    known = {"podium": PODIUM, "kube-scheduler": KUBE_SCHEDULER}
    told = f"the command to run, or one of {', '.join(known)}"
    parser.add_argument("--scheduler", default="podium", metavar="CMD", help=told)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--beside", metavar="CMD", help="another one, for comparison")
    given = parser.parse_args()
    compile_modules()
    chosen = [sized(each, given) for each in WORKLOADS if each.name in (given.workload or names)]
    found = {}
    for command in filter(None, (given.scheduler, given.beside)):
        found[command] = {each.name: figures(each, known.get(command, command)) for each in chosen}
    print(json.dumps(found, indent=2))


def sized(workload: Workload, given: argparse.Namespace) -> Workload:
    """The workload in the size asked for."""
    nodes, pods = (50, 200) if given.quick else (workload.nodes, workload.pods)
    return replace(workload, nodes=given.nodes or nodes, pods=given.pods or pods)


def figures(workload: Workload, command: str) -> dict[str, Any]:
    """What a scheduler makes of a workload."""
    found = {"nodes": workload.nodes, "pods": workload.pods, **run(workload, command)}
    print(workload.name, found, file=sys.stderr)
    return found


if __name__ == "__main__":
    main()
