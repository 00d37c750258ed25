"""The objects of the simulated cluster."""

from __future__ import annotations

import random
from typing import Any

#: Names are few, so that a pod is often created under the name of one that is gone.
POD_NAMES = tuple(f"p{number}" for number in range(24))
SELECTOR = {"app": "spread"}


def node(name: str, rng: random.Random) -> dict[str, Any]:
    room = {
        "cpu": rng.choice(("1", "2", "4")),
        "memory": rng.choice(("1Gi", "4Gi")),
        "pods": rng.choice(("3", "110", "110")),
    }
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": rng.choice(("a", "b")),
        "disk": rng.choice(("ssd", "hdd")),
    }
    taints = [taint(rng)] if rng.random() < 0.15 else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": room, "capacity": room},
    }


def taint(rng: random.Random) -> dict[str, str]:
    effect = rng.choice(("NoSchedule", "NoSchedule", "NoExecute"))
    return {"key": "dedicated", "value": "x", "effect": effect}


def pod(name: str, rng: random.Random, *, gates: bool = True) -> dict[str, Any]:
    requests = {
        "cpu": rng.choice(("50m", "300m", "500m", "900m", "1500m")),
        "memory": rng.choice(("64Mi", "64Mi", "600Mi")),
    }
    container: dict[str, Any] = {
        "name": "app",
        "image": "app:1",
        "resources": {"requests": requests},
    }
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {"app": "plain"}}
    spec: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": rng.choice((0, 1, 30)),
        "priorityClassName": rng.choice(("low", "low", "middle", "high")),
    }
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    if rng.random() < 0.15:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    kind = rng.random()
    if kind < 0.12:
        metadata["labels"] = dict(SELECTOR)
        term = {
            "labelSelector": {"matchLabels": SELECTOR},
            "topologyKey": "kubernetes.io/hostname",
        }
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif kind < 0.2:
        metadata["labels"] = {"app": "zoned"}
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "zoned"}},
            }
        ]
    if rng.random() < 0.1:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"c-{name}"}}]
    if gates and rng.random() < 0.08:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if rng.random() < 0.2:
        metadata["annotations"] = {"lab.podium/run-seconds": str(rng.randint(1, 40))}
        spec["restartPolicy"] = "Never"
    if rng.random() < 0.05:
        metadata["finalizers"] = ["example.com/kept"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def preferring(rng: random.Random) -> dict[str, Any]:
    """A pod that prefers some zones and nodes, by their labels and by the pods that are there."""
    made = pod("like", rng, gates=False)
    spec = made["spec"]
    spec.pop("volumes", None)
    made["metadata"]["labels"] = {"app": rng.choice(("plain", "zoned", "preferring"))}
    selector = {"matchLabels": {"app": rng.choice(("plain", "zoned", "preferring"))}}
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    term = {"labelSelector": selector, "topologyKey": rng.choice((zone, zone, host))}
    weighted = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": rng.choice((1, 50, 100)), "podAffinityTerm": term}
        ]
    }
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    affinity: dict[str, Any] = spec.setdefault("affinity", {})
    if rng.random() < 0.6:
        affinity[rng.choice(("podAffinity", "podAntiAffinity"))] = weighted
    if rng.random() < 0.3:
        preferred = [{"weight": 10, "preference": {"matchExpressions": [disk]}}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if rng.random() < 0.6:
        spread = {
            "maxSkew": rng.choice((1, 2)),
            "topologyKey": rng.choice((zone, zone, host)),
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
        spec["topologySpreadConstraints"] = [
            *spec.get("topologySpreadConstraints", ()),
            spread,
        ]
    return made


def claim(name: str, rng: random.Random) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": rng.choice(("lab-standard", "lab-standard", "lab-immediate")),
        },
    }


def replica_set(name: str, replicas: int, rng: random.Random) -> dict[str, Any]:
    template = pod(name, rng, gates=False)
    labels = {"set": name}
    spec = {each: template["spec"][each] for each in template["spec"] if each != "volumes"}
    spec["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels | {"app": "plain"}}, "spec": spec},
        },
    }


def priority_classes() -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("low", 10), ("middle", 100), ("high", 1000))
    ]


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": "plain"}, "ports": [{"port": 80}]},
    }


def budget(name: str, rng: random.Random) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": rng.choice((1, 2, "50%")),
            "selector": {"matchLabels": {"app": rng.choice(("plain", "zoned"))}},
        },
    }


def pod_group(name: str, rng: random.Random) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": rng.randint(1, 3)}},
            "priorityClassName": "middle",
        },
    }


#: What claims ask of a device: attributes that all have, that some have, and none.
EXPRESSIONS = (
    "",
    'device.driver == "devices.test"',
    'device.attributes["devices.test"].size >= 2',
    'device.attributes["devices.test"].model.matches("^a+$")',
    'device.attributes["devices.test"].missing == 1',
    'device.capacity["devices.test"].memory.compareTo(quantity("2Gi")) >= 0',
)


#: The name by which pods ask for devices as for any resource.
EXTENDED_RESOURCE = "devices.test/any"


def device_class(*, extended: bool = False) -> dict[str, Any]:
    selector = {"cel": {"expression": 'device.driver == "devices.test"'}}
    named = {"extendedResourceName": EXTENDED_RESOURCE} if extended else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "device"},
        "spec": {"selectors": [selector], **named},
    }


def device_slice(node: str, rng: random.Random) -> dict[str, Any]:
    devices = [
        {
            "name": f"d{number}",
            "attributes": {
                "size": {"int": rng.randint(1, 3)},
                "model": {"string": rng.choice(("aaaa", "aab"))},
            },
            "capacity": {"memory": {"value": rng.choice(("1Gi", "4Gi"))}},
        }
        for number in range(rng.randint(1, 3))
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": "devices.test",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def device_claim(name: str, rng: random.Random) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "device", "count": rng.choice((1, 1, 2))}
    expression = rng.choice(EXPRESSIONS)
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "some", "exactly": exactly}]}},
    }
