"""A day of all controllers on a virtual clock, written down.

Run as a program with a seed, it prints a digest of everything that was written.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
from typing import Any

from lab.controllers.managed_cluster import Json, pod, template, workload
from lab.controllers.virtual_clock import VirtualClock
from podium.lab.api.options import WriteOptions
from podium.lab.controllers.manager import ControllerManager
from podium.lab.registry.registry import Registry
from podium.lab.registry.subresources import bind

DAY = 86_400


async def run_day(seed: int) -> tuple[list[Any], float]:
    """What is written while controllers of every kind run for a day, and the time at its end."""
    clock, written = VirtualClock(), []
    rng = random.Random(seed)  # noqa: S311  the same uids and names for the same seed
    registry = Registry(clock=clock.now, rng=rng)
    kinds = ["Node", "Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "Event"]
    kinds += ["PersistentVolumeClaim", "PersistentVolume", "Endpoints", "PodDisruptionBudget"]

    def record(kind: str, old: Json | None, new: Json | None) -> None:
        written.append((clock.now(), kind, old if new is None else new))
        if new is not None and new["kind"] == "Pod" and not new["spec"].get("nodeName"):
            place = new["metadata"]["namespace"], new["metadata"]["name"]
            unbound.append(place)

    unbound: list[tuple[str, str]] = []
    registry.subscribe(kinds, record)
    for number in range(4):
        registry.create("Node", {"metadata": {"name": f"n{number}"}})
    for kind, made in _objects():
        registry.create(kind, made)
    manager = ControllerManager(registry, clock)
    manager.start()
    ends, nodes = clock.now() + DAY, iter(range(10_000))
    while clock.now() < ends:
        await asyncio.sleep(0)
        while unbound:
            namespace, name = unbound.pop(0)
            found = registry.find("Pod", name, namespace)
            if found is not None and not found["spec"].get("nodeName"):
                target = {"target": {"kind": "Node", "name": f"n{next(nodes) % 4}"}}
                bind(registry, namespace, name, target, WriteOptions())
        if manager.cluster.queue.next_due() is None:
            clock.advance(3600)
            registry.delete("Pod", registry.list("Pod")[0]["metadata"]["name"], "default")
    await manager.stop()
    return written, clock.now()


def _objects() -> list[tuple[str, Json]]:
    job = {
        "metadata": {"name": "sums", "namespace": "default"},
        "spec": {"completions": 3, "template": template("sums", restartPolicy="Never")},
    }
    claim = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    service = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    budget = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    return [
        ("Deployment", workload("web", 3)),
        ("StatefulSet", workload("db", 2, serviceName="db")),
        ("DaemonSet", workload("agent")),
        ("Job", job),
        ("PersistentVolumeClaim", claim),
        ("Service", service),
        ("PodDisruptionBudget", budget),
        ("Pod", pod("alone")),
    ]


def main() -> None:
    written, ended = asyncio.run(run_day(int(sys.argv[1])))
    text = json.dumps([written, ended], sort_keys=True)
    print(len(written), ended, hashlib.sha256(text.encode()).hexdigest())  # noqa: T201


if __name__ == "__main__":
    main()
