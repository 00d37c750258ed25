"""Pods wake when a DeviceTaintRule changes the taints of devices, and only then."""

from __future__ import annotations

from typing import Any

import yaml

from podium.library.profile_source import ProfileSource
from podium.virtual_cluster.cluster import SimulatedCluster

OBJECTS = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: sick}
spec:
  deviceSelector: {device: gpu-0}
  taint: {key: example.com/sick, effect: NoSchedule}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec:
  devices:
    requests:
      - name: gpu
        exactly: {deviceClassName: gpu}
---
apiVersion: v1
kind: Pod
metadata: {name: claims, namespace: default}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [{name: gpu, resourceClaimName: one}]
"""
OTHER = {"deviceSelector": {"pool": "n2"}, "taint": {"key": "a", "effect": "NoSchedule"}}


def attempts(cluster: SimulatedCluster) -> int:
    """How often the pod was tried in vain."""
    events = cluster.registry.list("Event", "default")
    return sum(each.get("count", 1) for each in events if each["reason"] == "FailedScheduling")


def node_of(cluster: SimulatedCluster) -> str:
    found: dict[str, Any] = cluster.registry.get("Pod", "claims", "default")["spec"]
    return str(found.get("nodeName", ""))


def test_pods_wake_when_taints_of_devices_change() -> None:
    with SimulatedCluster() as cluster:
        cluster.load(list(yaml.safe_load_all(OBJECTS)))
        cluster.add_scheduler(ProfileSource(profile="v1.37", environment={}).choose())
        cluster.run_for(30)
        before = node_of(cluster), attempts(cluster)
        cluster.registry.create(
            "DeviceTaintRule", {"metadata": {"name": "elsewhere"}, "spec": OTHER}
        )
        cluster.run_for(30)
        unrelated = node_of(cluster), attempts(cluster)
        cluster.registry.delete("DeviceTaintRule", "sick")
        cluster.run_for(30)
        after = node_of(cluster)

    assert before == ("", 1)
    assert unrelated == before
    assert after == "n1"
