"""Pods wake when a DeviceTaintRule changes the taints of devices, and only then."""

from __future__ import annotations

from typing import Any

import yaml

from podium.library.profile_source import ProfileSource
from podium.virtual_cluster.cluster import SimulatedCluster
from scheduler.one_device import ONE_DEVICE

SICK = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: sick}
spec:
  deviceSelector: {device: gpu-0}
  taint: {key: example.com/sick, effect: NoSchedule}
---
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
        cluster.load(list(yaml.safe_load_all(SICK + ONE_DEVICE)))
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
