"""Services have the addresses of the pods that they select."""

from __future__ import annotations

from lab.controllers.managed_cluster import ManagedCluster, workload
from manifests import service


def test_a_service_knows_the_addresses_of_its_pods(lab: ManagedCluster) -> None:
    ports = [{"port": 80, "targetPort": "http"}]
    lab.create("Service", service("web", ports=ports))
    made = workload("web", 3)
    made["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"name": "http", "containerPort": 8080}
    ]
    lab.create("Deployment", made)
    lab.settle()

    [subset] = lab.get("Endpoints", "web")["subsets"]
    assert {each["ip"] for each in subset["addresses"]} == {
        each["status"]["podIP"] for each in lab.pods()
    }
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
    [part] = lab.registry.list("EndpointSlice")
    assert len(part["endpoints"]) == 3
    assert part["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    lab.edit("Deployment", "web", replicas=1)
    lab.settle()
    assert len(lab.registry.list("EndpointSlice")[0]["endpoints"]) == 1

    lab.delete("Service", "web")
    lab.settle()
    assert lab.registry.list("Endpoints") == []
    assert lab.registry.list("EndpointSlice") == []
