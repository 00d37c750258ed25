"""Processor time of planning in a large cluster, and of reading the cluster from a snapshot."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

from measuring import script
from msgspec.structs import replace

import podium

if TYPE_CHECKING:
    from collections.abc import Callable

NODES, PODS = 5_000, 50_000
ZONE = "topology.kubernetes.io/zone"


def written(folder: str, nodes: int, pods: int) -> str:
    """A cluster as `podium snapshot -o json` writes it, one object per line; the path of the file.

    The pods of a replica set are alike.
    """
    dice = Random(1)  # noqa: S311  the same cluster in every run
    items = [_node(number) for number in range(nodes)]
    workloads = max(pods // 50, 1)
    cpus, memories = (100, 250, 500), (256, 512, 1024)
    sizes = [(dice.choice(cpus), dice.choice(memories)) for _ in range(workloads)]
    for number, (cpu, memory) in enumerate(sizes):
        spec = {"replicas": pods // workloads, "selector": {"matchLabels": {"app": f"a{number}"}}}
        items.append(_described("apps/v1", "ReplicaSet", f"a{number}", f"r{number}", spec=spec))
        items += [
            _pod(index, number, f"n{index % nodes:05}", cpu, memory)
            for index in range(number, pods, workloads)
        ]
    path = Path(folder, "cluster.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(item, separators=(",", ":")) for item in items))
    return str(path)


def _described(version: str, kind: str, name: str, uid: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind != "Node":
        metadata["namespace"] = "default"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def _node(number: int) -> dict[str, Any]:
    name = f"n{number:05}"
    allocatable = {"cpu": str((8, 16, 32)[number % 3]), "memory": "64Gi", "pods": "110"}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    node = _described("v1", "Node", name, f"node-{number}", status=status)
    node["metadata"]["labels"] = {"kubernetes.io/hostname": name, ZONE: f"z{number % 3}"}
    return node


def _pod(number: int, workload: int, node: str, cpu: int, memory: int) -> dict[str, Any]:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    lost = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in lost
    ]
    spec = {
        "nodeName": node,
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
        "tolerations": tolerations,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    status = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    pod = _described("v1", "Pod", f"p{number}", f"u{number}", spec=spec, status=status)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"a{workload}"}
    pod["metadata"] |= {
        "labels": {"app": f"a{workload}"},
        "ownerReferences": [{**owner, "uid": f"r{workload}", "controller": True}],
    }
    return pod


def seconds(work: Callable[[], object]) -> float:
    """Processor time of the work."""
    begun = process_time()
    work()
    return process_time() - begun


def _too_large(sample: podium.Pod) -> podium.Pod:
    """A pod that requests more cpu than any node has free."""
    container = (sample.spec.containers or [])[0]
    resources = replace(container.resources, requests={"cpu": "40", "memory": "1Gi"})
    spec = replace(sample.spec, node_name="", containers=[replace(container, resources=resources)])
    metadata = replace(sample.metadata, name="large", uid="large")
    return replace(sample, metadata=metadata, spec=spec)


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Question -> seconds, and times the time of reading."""
    nodes, pods = (500, 5_000) if quick else (NODES, PODS)
    profile = podium.default_profile()
    chosen = podium.ProfileSource(environment={}).choose()
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, nodes, pods)
        found: dict[str, Any] = {"nodes": nodes, "pods": pods}
        objects = podium.read([path])
        drain = [podium.parse_change("drain", "n00001")]

        def drained() -> podium.Plan:
            return podium.plan(podium.cluster_documents([path]).documents, drain, chosen)

        small = written(folder + "/small", 5, 50)
        podium.plan(podium.cluster_documents([small]).documents, drain, chosen)  # imports
        # In turns, so that other work on the machine slows both down.
        reads, drains = [], []
        for _ in range(3):
            reads.append(seconds(lambda: podium.read([path])))
            drains.append(seconds(drained))
        reading = min(reads)
    plain = objects.pods[0]
    pending = _too_large(plain)
    waiting = objects.copied()
    waiting.pods = [*objects.pods, pending]
    asked: dict[str, Callable[[], object]] = {
        "how many more fit (`podium.capacity`)": lambda: podium.capacity(objects, plain, profile),
        "what would make a pod fit (`podium.fix`)": lambda: podium.fix(waiting, pending, profile),
        "three zones lost (`podium.survive`)": lambda: podium.survive(objects, ZONE, chosen),
    }
    found["reading"] = round(reading, 2)
    found["questions"] = {
        name: {"seconds": round(seconds(work), 2)} for name, work in asked.items()
    }
    found["questions"]["a node drained, file included (`podium.plan`)"] = {
        "seconds": round(min(drains), 2)
    }
    return found


if __name__ == "__main__":
    script(measure)
