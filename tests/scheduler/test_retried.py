"""Every event that a plugin of v1.36 declares happens, and the pod that it rejected is retried."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import msgspec
import pytest

from manifests import device_slice
from podium.cluster.queue.entities import Pool
from podium.engine.framework.declaration import EventContext
from podium.engine.rules.plugins import never
from podium.generations.v1_36 import V1_36
from podium.objects.kinds.registry import KINDS
from scheduler.fakes import Cluster

Json = dict[str, Any]
_versions = count(1)


def item(kind: str, name: str, namespace: str | None = None, **fields: Any) -> Any:
    """An object as its informer decodes it."""
    about = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": str(next(_versions))}
    metadata = {**about, **fields.pop("metadata", {})}
    if namespace is not None:
        metadata["namespace"] = namespace
    made = KINDS[kind].decoder.decode(json.dumps({"kind": kind, "metadata": metadata, **fields}))
    return made if made.kind else msgspec.structs.replace(made, kind=kind)


def pod(name: str, spec: Json, labels: Json | None = None, **status: Any) -> Any:
    return item("Pod", name, "default", metadata={"labels": labels or {}}, spec=spec, status=status)


def node(labels: Json, *, cpu: str = "32", spec: Json | None = None, **status: Any) -> Any:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110", "example.com/gpu": cpu}
    about = {"labels": {"kubernetes.io/hostname": "new", **labels}}
    return item(
        "Node", "new", metadata=about, spec=spec or {}, status={"allocatable": room, **status}
    )


IN_A = {"zone": "a"}
WEB = {"app": "web"}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}}
CONTAINER = {
    "name": "c",
    "ports": [{"containerPort": 80, "hostPort": 80}],
    "resources": {"requests": {"cpu": "2", "example.com/gpu": "1"}},
}
DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "d"}}
#: A pod that asks for something of every plugin.
WAITING: Json = {
    "schedulerName": "default-scheduler",
    "containers": [CONTAINER],
    "nodeSelector": IN_A,
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": WEB},
        }
    ],
    "volumes": [
        DISK,
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "csi", "csi": {"driver": "csi.example.com"}},
    ],
}
PLACED: Json = {"nodeName": "n1", "containers": [CONTAINER], "volumes": WAITING["volumes"]}
AVOIDING = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "w"}}}
#: A placed pod that keeps the waiting one off its zone.
ALONE: Json = {
    **PLACED,
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AVOIDING]}},
}
TOLERATION = {"operator": "Exists"}
CLAIMS = [{"name": "gpu", "resourceClaimName": "one"}]


def resized(cpu: str, given: str) -> Any:
    """A placed pod that asks for *cpu*, and whose kubelet has given it as much as *given*."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    has = {"name": "c", "resources": {"requests": {"cpu": given}}}
    statuses = [{**has, "allocatedResources": {"cpu": given}}]
    return pod("large", {"nodeName": "n1", "containers": [container]}, containerStatuses=statuses)


def claim(**spec: Any) -> Any:
    return item("PersistentVolumeClaim", "data", "default", spec={"storageClassName": "s", **spec})


def volume(zone: str) -> Any:
    about = {"labels": {"topology.kubernetes.io/zone": zone}}
    return item("PersistentVolume", "v", metadata=about, spec={"storageClassName": "s"})


def storage_class(*zones: str) -> Any:
    terms = [{"key": "zone", "values": list(zones)}]
    return item(
        "StorageClass",
        "s",
        provisioner="csi.example.com",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": terms}],
    )


def csi_node(count: int, migrated: str) -> Any:
    driver = {"name": "csi.example.com", "nodeID": "n1", "allocatable": {"count": count}}
    about = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}}
    return item("CSINode", "n1", metadata=about, spec={"drivers": [driver]})


def capacity(size: str) -> Any:
    return item("CSIStorageCapacity", "c", "default", storageClassName="s", capacity=size)


def device_class(expression: str) -> Any:
    selectors = [{"cel": {"expression": expression}}]
    return item("DeviceClass", "gpu", spec={"selectors": selectors})


def resource_claim(**status: Any) -> Any:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "w", "uid": "Pod-w", "controller": True}
    about = {"ownerReferences": [owner]}
    fields = {"spec": {"devices": {}}, "status": status}
    return item("ResourceClaim", "one", "default", metadata=about, **fields)


def slices(*devices: str) -> Any:
    spec = device_slice("n1", [{"name": name} for name in devices])["spec"]
    return item("ResourceSlice", "n1-gpus", spec=spec)


ALLOCATION: Json = {"devices": {"results": []}}
#: Event -> the object before and after it.
EVENTS: dict[str, tuple[Any, Any]] = {
    "Node Add": (None, node(IN_A)),
    "Node Delete": (node(IN_A), None),
    "Node UpdateNodeTaint": (
        node(IN_A, spec={"unschedulable": True, "taints": [{"key": "t", "effect": "NoSchedule"}]}),
        node(IN_A),
    ),
    "Node UpdateNodeLabel": (node({}), node(IN_A)),
    "Node UpdateNodeAllocatable": (node(IN_A, cpu="1"), node(IN_A)),
    "Node UpdateNodeDeclaredFeature": (node(IN_A), node(IN_A, declaredFeatures=["GuaranteedQoS"])),
    "Pod Add": (None, pod("web", PLACED, WEB)),
    "Pod Delete": (pod("web", ALONE, WEB), None),
    "Pod UpdatePodLabel": (pod("web", PLACED), pod("web", PLACED, WEB)),
    "Pod UpdatePodScaleDown": (resized("1", "3"), resized("1", "1")),
    "PersistentVolumeClaim Add": (None, claim()),
    "PersistentVolumeClaim Update": (claim(), claim(volumeName="v")),
    "PersistentVolume Add": (None, volume("a")),
    "PersistentVolume Update": (volume("a"), volume("b")),
    "StorageClass Add": (None, storage_class("a")),
    "StorageClass Update": (storage_class("a"), storage_class("a", "b")),
    "CSINode Add": (None, csi_node(1, "")),
    "CSINode Update": (csi_node(1, ""), csi_node(2, "kubernetes.io/gce-pd")),
    "CSIDriver Update": (
        item("CSIDriver", "csi.example.com", spec={"storageCapacity": True}),
        item("CSIDriver", "csi.example.com", spec={"storageCapacity": False}),
    ),
    "CSIStorageCapacity Add": (None, capacity("1Gi")),
    "CSIStorageCapacity Update": (capacity("1Gi"), capacity("2Gi")),
    "VolumeAttachment Delete": (
        item(
            "VolumeAttachment",
            "a",
            spec={
                "attacher": "csi.example.com",
                "nodeName": "n1",
                "source": {"persistentVolumeName": "v"},
            },
        ),
        None,
    ),
    "DeviceClass Add": (None, device_class("true")),
    "DeviceClass Update": (device_class("true"), device_class("false")),
    "ResourceClaim Add": (None, resource_claim()),
    "ResourceClaim Update": (resource_claim(allocation=ALLOCATION), resource_claim()),
    "ResourceSlice Add": (None, slices("gpu-0")),
    "ResourceSlice Update": (slices("gpu-0"), slices("gpu-0", "gpu-1")),
}
#: Event of the pod itself -> what changes in its specification or its status.
OWN: dict[str, tuple[Json, Json]] = {
    "Pod UpdatePodToleration": ({}, {"tolerations": [TOLERATION]}),
    "Pod UpdatePodSchedulingGatesEliminated": ({"schedulingGates": [{"name": "g"}]}, {}),
    "Pod UpdatePodGeneratedResourceClaim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "one"}]},
        },
    ),
    "Pod Update": ({"hostNetwork": True, "hostUsers": False}, {"hostNetwork": True}),
}


def declared() -> list[tuple[str, str]]:
    """Each plugin, with each event that may help pods which it rejected."""
    found = []
    for name, plugin in V1_36.plugin.items():
        events = plugin.events
        if callable(events):
            events = events(EventContext([], lambda _: {}, V1_36.wake_ups))
        found += [(name, event) for event, hint in (events or {}).items() if hint is not never]
    return found


def waiting(spec: Json) -> Any:
    status = spec.pop("status", {})
    return pod("w", {**WAITING, **spec}, {"app": "w"}, **status)


@pytest.mark.parametrize(("plugin", "event"), declared())
def test_an_event_that_may_help_lets_the_pod_be_tried_again(plugin: str, event: str) -> None:
    made = Cluster(item("Node", "n1"))
    if event in OWN:
        before, after = (waiting(dict(spec)) for spec in OWN[event])
        made.put(resource_claim())
    else:
        before, after = EVENTS[event]
        if before is not None:
            made.put(before)
    asking = before if event in OWN else waiting({"resourceClaims": CLAIMS})
    if "ResourceClaim" not in event and event not in OWN:
        made.put(resource_claim())
    made.put(asking)
    turn = made.state.queue.pop()
    if turn is not None:
        made.state.requeue(turn, turn.pod, rejected_by={plugin}, cycle=None)
    assert made.pool(asking) in {Pool.UNSCHEDULABLE, Pool.GATED}

    if after is None:
        made.drop(before)
    else:
        made.put(after)

    assert made.pool(asking) in {Pool.ACTIVE, Pool.BACKOFF}


def test_a_pod_waits_until_the_kubelet_has_shrunk_another_one() -> None:
    """The specification is changed first, which frees nothing yet."""
    made = Cluster(item("Node", "n1"), resized("3", "3"))
    asking = waiting({})
    made.put(asking)
    turn = made.state.queue.pop()
    assert turn is not None
    made.state.requeue(turn, turn.pod, rejected_by={"NodeResourcesFit"}, cycle=None)

    made.put(resized("1", "3"))
    assert made.pool(asking) is Pool.UNSCHEDULABLE

    made.put(resized("1", "1"))
    assert made.pool(asking) is Pool.BACKOFF
