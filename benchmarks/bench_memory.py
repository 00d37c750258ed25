"""A very large cluster in memory: 100,000 nodes and 1,000,000 pods of 2,000 kinds.

Pods are made in batches and handed over, as a list from an API server would be; what is reported is
the processor time of taking them over, and the peak of the whole process.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

from measuring import profiles, script

from podium.cluster.simulation import Simulation
from podium.objects.kinds.meta import ObjectMeta, OwnerReference
from podium.objects.kinds.node import Node, NodeCondition, NodeStatus
from podium.objects.kinds.pod import Container, Pod, PodSpec, ResourceRequirements
from podium.objects.reading.collection import Objects
from podium_research.bench.measurement import peak_memory_bytes, reset_peak_memory

KINDS = 2_000
REQUESTS = ResourceRequirements(requests={"cpu": "100m", "memory": "200Mi"})
ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def node(number: int) -> Node:
    """One of many nodes in three zones."""
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, ZONE: f"zone-{number % 3}", REGION: "region"}
    return Node(
        kind="Node",
        metadata=ObjectMeta(name=name, uid=name, labels=labels),
        status=NodeStatus(
            allocatable={"cpu": "64", "memory": "256Gi", "pods": "110"},
            conditions=[NodeCondition("Ready", "True")],
        ),
    )


def pod(number: int, nodes: int = 0) -> Pod:
    """One pod of one of many replica sets; without nodes, one that waits."""
    kind = number % KINDS
    owner = OwnerReference("ReplicaSet", f"set-{kind}", f"set-{kind}", "apps/v1", controller=True)
    return Pod(
        kind="Pod",
        metadata=ObjectMeta(
            name=f"app-{kind}-{number:07x}",
            namespace=f"team-{kind % 50}",
            uid=f"{number:032x}",
            labels={"app": f"app-{kind}"},
            owner_references=[owner],
        ),
        spec=PodSpec(
            node_name=f"node-{number % nodes}" if nodes else "",
            containers=[Container(image="example.com/app:1", resources=REQUESTS)],
            priority=0,
        ),
    )


def batches(count: int, nodes: int, size: int = 50_000) -> Iterator[Objects]:
    """The pods of the cluster, some at a time."""
    for start in range(0, count, size):
        found = Objects()
        found.pods += [pod(number, nodes) for number in range(start, min(start + size, count))]
        yield found


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Loading at a quarter, half and the whole; peak; a thousand decisions afterwards."""
    nodes, pods = (200, 2_000) if quick else (100_000, 1_000_000)
    reset_peak_memory()
    simulation = Simulation(profiles()["v1.13"])
    objects = Objects()
    objects.nodes += [node(number) for number in range(nodes)]
    gc.disable()
    start = time.process_time()
    simulation.load(objects)
    loaded: dict[str, Any] = {"nodes": round(time.process_time() - start, 3), "pods": {}}
    taken, done = 0.0, 0
    for batch in batches(pods, nodes, pods // 20):
        start = time.process_time()
        simulation.load(batch)
        taken += time.process_time() - start
        done += len(batch.pods)
        if done in {pods // 4, pods // 2, pods}:
            loaded["pods"][str(done)] = round(taken, 3)
    gc.freeze()
    gc.enable()
    waiting = [pod(pods + KINDS * number) for number in range(1000)]
    decided = [_decide(simulation, each) for each in waiting]
    return {
        "nodes": nodes,
        "pods": pods,
        "loadCpuSeconds": loaded,
        "peakMemoryMiB": round(peak_memory_bytes() / 2**20),
        "cpuMsPerPod": round(sorted(decided)[len(decided) // 2] * 1000, 4),
        "firstCpuMs": round(decided[0] * 1000, 1),
    }


def _decide(simulation: Simulation, waiting: Pod) -> float:
    start = time.process_time()
    for step in simulation.run((waiting,)):
        assert step.decision.node is not None
    return time.process_time() - start


if __name__ == "__main__":
    script(measure)
