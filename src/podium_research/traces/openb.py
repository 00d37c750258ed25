"""The openb trace of a GPU cluster (Alibaba, cluster-trace-gpu-v2023), from its CSV files.

A node has `alibabacloud.com/gpu-milli` (a thousandth of a device) as a resource and labels for the
number and the model of its devices. A pod requests so many thousandths in all; a label says over
how many devices, and node affinity which models it accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium_research.traces.csv_trace import CsvTable, Row
from podium_research.traces.trace import Trace, TraceNode, TracePod

if TYPE_CHECKING:
    from typing import Any

#: The resource of devices, in thousandths of one.
GPU_MILLI = "alibabacloud.com/gpu-milli"
#: Label: how many devices a node has, or a pod wants.
GPU_COUNT = "alibabacloud.com/gpu-count"
#: Label of nodes: the model of their devices.
GPU_MODEL = "alibabacloud.com/gpu-card-model"
#: How many pods a node holds; the experiment with this trace never reaches it.
PODS_PER_NODE = 1001
WHOLE_DEVICE = 1000


def read_openb(name: str, nodes: CsvTable, pods: CsvTable) -> Trace:
    """The trace in a list of nodes and a list of pods."""
    return Trace(
        name,
        tuple(TraceNode(_node(row)) for row in nodes.rows()),
        tuple(sorted(map(_pod, pods.rows()), key=lambda each: each.arrives)),
    )


def _node(row: Row) -> Node:
    devices = row.whole("gpu") if row.has("gpu") else 0
    labels = {"kubernetes.io/hostname": row.text("sn")}
    resources: dict[str, Any] = {
        "cpu": f"{row.whole('cpu_milli')}m",
        "memory": f"{row.whole('memory_mib')}Mi",
        "pods": str(PODS_PER_NODE),
    }
    if devices:
        labels |= {GPU_COUNT: str(devices), GPU_MODEL: row.text("model")}
        resources[GPU_MILLI] = str(devices * WHOLE_DEVICE)
    return msgspec.convert(
        {
            "metadata": {"name": row.text("sn"), "uid": row.text("sn"), "labels": labels},
            "status": {"capacity": resources, "allocatable": resources},
        },
        Node,
    )


def _pod(row: Row) -> TracePod:
    name, devices = row.text("name"), row.whole("num_gpu")
    requests = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if devices:
        requests[GPU_MILLI] = str(devices * row.whole("gpu_milli"))
        metadata["labels"] = {GPU_COUNT: str(devices)}
        if models := row.text("gpu_spec") if row.has("gpu_spec") else "":
            spec["affinity"] = _on_models(models.split("|"))
    created = row.number("creation_time") if row.has("creation_time") else 0.0
    ended = row.number("deletion_time") if row.has("deletion_time") else None
    return TracePod(
        msgspec.convert({"metadata": metadata, "spec": spec}, Pod), created, leaves=ended
    )


def _on_models(models: list[str]) -> dict[str, Any]:
    """Required node affinity to nodes with one of these models."""
    wanted = {"key": GPU_MODEL, "operator": "In", "values": models}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
