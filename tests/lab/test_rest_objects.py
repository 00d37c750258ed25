"""Objects over HTTP: create, read, replace, delete."""

from __future__ import annotations

from lab.serving import LabServer, node, pod

PODS = "/api/v1/namespaces/default/pods"


def test_a_pod_that_was_created_is_read_back_with_its_defaults(lab_server: LabServer) -> None:
    made = lab_server.post(PODS, pod("web"))

    assert lab_server.get(f"{PODS}/web") == made
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["status"]["phase"] == "Pending"


def test_nodes_are_listed_in_the_order_of_their_names(lab_server: LabServer) -> None:
    for name in ("b", "a", "c"):
        lab_server.post("/api/v1/nodes", node(name))

    listed = lab_server.get("/api/v1/nodes")

    assert [each["metadata"]["name"] for each in listed["items"]] == ["a", "b", "c"]
