"""The metrics API."""

from __future__ import annotations

from typing import Any

from lab.serving import LabServer, node, pod

METRICS = "/apis/metrics.k8s.io/v1beta1"


def run(server: LabServer, name: str, **annotations: str) -> None:
    item: dict[str, Any] = pod(name, nodeName="node")
    item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "300m", "memory": "64Mi"}}
    item["metadata"]["annotations"] = {
        f"lab.podium/{key.replace('_', '-')}": value for key, value in annotations.items()
    }
    item["metadata"]["labels"] = {"name": name}
    server.post("/api/v1/namespaces/default/pods", item)
    status = {"status": {"phase": "Running"}}
    server.patch(f"/api/v1/namespaces/default/pods/{name}/status", status)


def test_usage_comes_from_requests_or_annotations(lab_server: LabServer) -> None:
    lab_server.post("/api/v1/nodes", node())
    run(lab_server, "plain")
    run(lab_server, "busy", usage_cpu="1500m", usage_memory="1Gi")
    items = lab_server.get(f"{METRICS}/pods")["items"]
    found = {each["metadata"]["name"]: each["containers"][0]["usage"] for each in items}
    assert found == {
        "busy": {"cpu": "1500m", "memory": "1Gi"},
        "plain": {"cpu": "300m", "memory": "64Mi"},
    }
    one = lab_server.get(f"{METRICS}/namespaces/default/pods/busy")
    assert one["kind"] == "PodMetrics"
    selected = lab_server.get(f"{METRICS}/namespaces/default/pods?labelSelector=name%3Dplain")
    assert len(selected["items"]) == 1
    usage = lab_server.get(f"{METRICS}/nodes/node")["usage"]
    assert usage == {"cpu": "1800m", "memory": "1088Mi"}


def test_pods_that_do_not_run_use_nothing(lab_server: LabServer) -> None:
    lab_server.post("/api/v1/nodes", node())
    lab_server.post("/api/v1/namespaces/default/pods", pod("waiting"))
    assert lab_server.get(f"{METRICS}/pods")["items"] == []
    assert lab_server.call("GET", f"{METRICS}/namespaces/default/pods/waiting").status == 404
    assert lab_server.get(f"{METRICS}/nodes")["items"][0]["usage"] == {"cpu": "0", "memory": "0"}


def test_metrics_cannot_be_written(lab_server: LabServer) -> None:
    assert lab_server.call("DELETE", f"{METRICS}/nodes/x").status == 405


def test_autoscalers_are_served_in_both_versions(lab_server: LabServer) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    lab_server.post(path.format("v1"), {"metadata": {"name": "web"}, "spec": spec})
    newer = lab_server.get(path.format("v2") + "/web")
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    assert newer["spec"]["minReplicas"] == 1
    older = lab_server.get(path.format("v1") + "/web")
    assert older["spec"]["targetCPUUtilizationPercentage"] == 70
    assert older["apiVersion"] == "autoscaling/v1"
