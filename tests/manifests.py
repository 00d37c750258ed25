"""Objects as JSON has them, in one line each; and small clusters made of them.

What is not said is as `kubectl create` would leave it. `builders` makes the same objects as rules
read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.lab.api.resources import stored

Manifest = dict[str, Any]
#: What `pod` and `node` write into the metadata; other names are fields of the specification.
_METADATA = ("annotations", "creationTimestamp", "deletionTimestamp", "labels", "uid")


def manifest(kind: str, name: str, namespace: str = "default", **parts: Any) -> Manifest:
    """An object of a kind that the API has; *parts* are its spec, its status, more metadata."""
    row = stored(kind)
    metadata = {"name": name} | ({"namespace": namespace} if row.namespaced else {})
    metadata |= parts.pop("metadata", {})
    return {"apiVersion": row.group_version, "kind": kind, "metadata": metadata, **parts}


def listed(items: Iterable[Manifest]) -> Manifest:
    """The objects as `kubectl get -o json` prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def node(name: str = "n1", cpu: str = "4", memory: str = "8Gi", **spec: Any) -> Manifest:
    """A node that is ready; `taints` as in the API, `unschedulable` to cordon it."""
    metadata = {key: spec.pop(key) for key in _METADATA if key in spec}
    room = {"cpu": cpu, "memory": memory, "pods": spec.pop("pods", "110")}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": room, "allocatable": room, "conditions": ready}
    return manifest("Node", name, metadata=metadata, spec=spec, status=status)


def pod(name: str = "web", cpu: str = "500m", namespace: str = "default", **spec: Any) -> Manifest:
    """A pod with one container; `labels` go to the metadata, the rest is its spec."""
    metadata = {key: spec.pop(key) for key in _METADATA if key in spec}
    status = {"status": spec.pop("status")} if "status" in spec else {}
    containers = [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}]
    own = {"containers": containers} | spec
    return manifest("Pod", name, namespace, metadata=metadata, spec=own, **status)


def workload(kind: str, name: str, replicas: int | None, pods: Manifest) -> Manifest:
    """A workload that makes pods with this specification, which carry its name as `app`."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pods}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return manifest(kind, name, spec=spec | ({} if replicas is None else {"replicas": replicas}))


def deployment(name: str = "web", replicas: int | None = 2, cpu: str = "100m") -> Manifest:
    """A deployment without a uid."""
    return workload("Deployment", name, replicas, pod(name, cpu)["spec"])


def service(name: str, **spec: Any) -> Manifest:
    """A service that selects pods by `app: name`."""
    return manifest("Service", name, spec={"selector": {"app": name}, **spec})


def budget(name: str, app: str, **spec: Any) -> Manifest:
    """A disruption budget of the pods with this `app`."""
    return manifest(
        "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": app}}, **spec}
    )


def pod_group(name: str, minimum: int, **spec: Any) -> Manifest:
    """A group of pods that are placed together, or not at all below the minimum."""
    policy = {"gang": {"minCount": minimum}}
    return manifest("PodGroup", name, spec={"schedulingPolicy": policy, **spec})


def priority_class(name: str, value: int) -> Manifest:
    return manifest("PriorityClass", name, value=value)


def claim(name: str, **spec: Any) -> Manifest:
    """A claim for a volume of 1 GiB that one node at a time mounts."""
    own = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return manifest("PersistentVolumeClaim", name, spec={**own, **spec})


def device_class(name: str = "gpu", expression: str = "") -> Manifest:
    """A class of devices, those that an expression selects if there is one."""
    spec = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    return manifest("DeviceClass", name, spec=spec)


def device_slice(where: str, devices: Iterable[Mapping[str, Any]], **spec: Any) -> Manifest:
    """The only slice of the pool of a node."""
    own = {
        "driver": "gpu.example.com",
        "nodeName": where,
        "pool": {"name": where, "generation": 1, "resourceSliceCount": 1},
        "devices": list(devices),
    }
    return manifest("ResourceSlice", f"{where}-devices", spec={**own, **spec})


def device_claim(name: str, **exactly: Any) -> Manifest:
    """A claim for one device of a class, unless told otherwise."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}
    return manifest("ResourceClaim", name, spec={"devices": {"requests": [request]}})


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
