"""A terminating namespace is emptied before it goes."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import ManagedCluster, workload
from podium.lab.api.status import StatusError


def test_a_namespace_goes_when_everything_in_it_is_gone(lab: ManagedCluster) -> None:
    lab.create("Namespace", {"metadata": {"name": "shop"}})
    made = workload("web", 3)
    made["metadata"]["namespace"] = "shop"
    lab.create("Deployment", made)
    lab.create("ConfigMap", {"metadata": {"name": "settings", "namespace": "shop"}})
    lab.settle()
    assert len(lab.pods()) == 3
    lab.registry.delete("Namespace", "shop")
    lab.settle()

    assert lab.pods() == []
    with pytest.raises(StatusError):
        lab.registry.get("Namespace", "shop")
