"""Manifests as people write them, in one line each; and small clusters made of them."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def node(name: str, cpu: str = "4", memory: str = "8Gi", **more: Any) -> Manifest:
    """A node; `labels` and `taints` as in the API, `unschedulable` to cordon it."""
    metadata: Manifest = {"name": name}
    if labels := more.pop("labels", None):
        metadata["labels"] = labels
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"}
    status = {
        "capacity": allocatable,
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": more,
        "status": status,
    }


def pod(name: str, cpu: str = "500m", namespace: str = "default", **spec: Any) -> Manifest:
    """A pod with one container; `labels` go to the metadata, the rest is its spec."""
    metadata: Manifest = {"name": name, "namespace": namespace}
    for key in ("labels", "creationTimestamp", "deletionTimestamp", "uid"):
        if key in spec:
            metadata[key] = spec.pop(key)
    found: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    if status := spec.pop("status", None):
        found["status"] = status
    containers = [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}]
    return found | {"spec": {"containers": containers} | spec}


def deployment(name: str, replicas: int = 2, cpu: str = "100m") -> Manifest:
    """A deployment without a uid."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name, cpu)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name: str) -> Manifest:
    """A service that selects pods by `app: name`."""
    metadata, spec = {"name": name}, {"selector": {"app": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


#: Five nodes: two small, one large, one cordoned, one for databases only.
FIVE = [
    node("n1", cpu="2"),
    node("n2", cpu="2"),
    node("n3", cpu="8", memory="64Gi"),
    node("n4", unschedulable=True),
    node("n5", taints=[{"key": "for", "value": "db", "effect": "NoSchedule"}]),
]


def many(count: int) -> list[Manifest]:
    """Nodes with long names, of three sizes; every fifth is full, every tenth tainted."""
    found = []
    for number in range(count):
        name = f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal"
        spec: Manifest = {}
        if number % 10 == 4:
            spec["taints"] = [{"key": "for", "value": "db", "effect": "NoSchedule"}]
        cpu = "100m" if number % 5 == 0 else ("2", "4", "8")[number % 3]
        found.append(node(name, cpu=cpu, **spec))
    return found
