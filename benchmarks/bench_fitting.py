"""Processor time of planning in a large cluster, and of reading the cluster from a file."""

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
    """A cluster as `kubectl get -o json` prints it; the path of the file."""
    dice = Random(1)  # noqa: S311  the same cluster in every run
    items: list[dict[str, Any]] = []
    for number in range(nodes):
        name = f"n{number:05}"
        labels = {"kubernetes.io/hostname": name, ZONE: f"z{number % 3}"}
        allocatable = {"cpu": str((8, 16, 32)[number % 3]), "memory": "64Gi", "pods": "110"}
        status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": name, "labels": labels}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    workloads = max(pods // 50, 1)
    for number in range(workloads):
        labels = {"app": f"a{number}"}
        template = {"containers": [{"name": "c", "image": "x"}]}
        items.append(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": f"a{number}", "namespace": "default", "uid": f"r{number}"},
                "spec": {
                    "replicas": pods // workloads,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": template},
                },
            }
        )
    for number in range(pods):
        asked = {
            "cpu": f"{dice.choice((100, 250, 500))}m",
            "memory": f"{dice.choice((256, 512, 1024))}Mi",
        }
        spec = {
            "nodeName": f"n{number % nodes:05}",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": asked}}],
        }
        workload = number % workloads
        labels = {"app": f"a{workload}"}
        owner = {"kind": "ReplicaSet", "name": f"a{workload}", "uid": f"r{workload}"}
        metadata = {
            "name": f"p{number}",
            "namespace": "default",
            "uid": f"u{number}",
            "ownerReferences": [{"apiVersion": "apps/v1", "controller": True, **owner}],
        }
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata | {"labels": labels},
                "spec": spec,
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    path = Path(folder, "cluster.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


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
        reading = seconds(lambda: podium.read([path]))
        objects = podium.read([path])
        drain = [podium.parse_change("drain", "n00001")]
        drained = seconds(
            lambda: podium.plan(podium.cluster_documents([path]).documents, drain, chosen)
        )
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
        "seconds": round(drained, 2)
    }
    return found


if __name__ == "__main__":
    script(measure)
