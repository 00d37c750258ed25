"""The leases of a lab's nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from host.conftest import Lab
from podium.host.node_leases import NAMESPACE, renew_node_leases
from podium.lab.registry.registry import Registry


def test_leases_come_are_renewed_and_go_with_their_nodes() -> None:
    registry = Registry()
    registry.create("Node", {"metadata": {"name": "a"}})
    registry.create("Node", {"metadata": {"name": "b"}})
    assert renew_node_leases(registry) == 2
    first = registry.get("Lease", "a", NAMESPACE)["spec"]["renewTime"]
    registry.delete("Node", "b")

    renew_node_leases(registry)

    leases = registry.list("Lease", NAMESPACE)
    assert [each["metadata"]["name"] for each in leases] == ["a"]
    assert leases[0]["spec"]["renewTime"] > first


@pytest.mark.slow
def test_a_lab_has_the_leases_of_its_nodes(programs: Callable[..., Any]) -> None:
    lab = programs(Lab, "--nodes", "2")

    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    leases = json.loads(lab.request(path))["items"]

    assert [each["spec"]["holderIdentity"] for each in leases] == ["node-0", "node-1"]
