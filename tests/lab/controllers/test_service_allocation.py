"""Services get cluster IPs and node ports."""

from __future__ import annotations

from lab.controllers.managed_cluster import ManagedCluster


def test_services_get_addresses_that_nobody_else_has(lab: ManagedCluster) -> None:
    for number in range(3):
        metadata = {"name": f"s{number}", "namespace": "default"}
        lab.create("Service", {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    lab.settle()

    assert (
        len({each["spec"]["clusterIP"] for each in lab.registry.list("Service")}) == 4
    )  # and that of the API server
