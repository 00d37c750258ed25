"""The CPU time of a pod from its replica set until it is reported as running."""

from __future__ import annotations

import gc
import time

import pytest

from lab.controllers.managed_cluster import ManagedCluster, workload
from podium.lab.api.options import WriteOptions
from podium.lab.registry import subresources


def cost(pods: int) -> float:
    """Seconds of CPU per pod: made, bound, started, counted."""
    lab = ManagedCluster(nodes=100, binds=False)
    lab.create("ReplicaSet", workload("web", pods))
    gc.collect()
    gc.freeze()
    began = time.process_time()
    lab.controllers.sync_ready()
    for number, (namespace, name) in enumerate(list(lab.controllers.cluster.pods.all)):
        target = {"target": {"kind": "Node", "name": f"n{number % 100}"}}
        subresources.bind(lab.registry, namespace, name, target, WriteOptions())
    lab.settle(2.0)
    took = time.process_time() - began
    gc.unfreeze()
    assert lab.status("ReplicaSet", "web")["readyReplicas"] == pods
    return took / pods


@pytest.mark.parametrize("pods", [2_000, pytest.param(50_000, marks=pytest.mark.soak)])
def test_a_pod_costs_little_however_many_there_are(pods: int) -> None:
    assert cost(pods) < 0.002  # about 0.0003 on a machine that does nothing else
