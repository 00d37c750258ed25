"""Autoscalers follow what pods use, by their requests or their annotations."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import ManagedCluster, workload


def deployment(lab: ManagedCluster, replicas: int = 2, usage: str = "") -> None:
    item = workload("web", replicas)
    template = item["spec"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
    if usage:
        template["metadata"]["annotations"] = {"lab.podium/usage-cpu": usage}
    lab.create("Deployment", item)


def autoscaler(lab: ManagedCluster, utilization: int = 50, **spec: Any) -> None:
    target = {"type": "Utilization", "averageUtilization": utilization}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": metrics, **spec}
    metadata = {"name": "web", "namespace": "default"}
    lab.create("HorizontalPodAutoscaler", {"metadata": metadata, "spec": body})


def replicas(lab: ManagedCluster) -> int:
    return int(lab.get("Deployment", "web")["spec"]["replicas"])


def test_pods_that_use_more_than_the_target_become_more(lab: ManagedCluster) -> None:
    deployment(lab, 2, usage="200m")
    lab.settle()
    autoscaler(lab, 50)
    lab.settle(60)
    assert replicas(lab) == 10
    status = lab.status("HorizontalPodAutoscaler", "web")
    assert status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 100
    found = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert found["ScalingActive"] == ("True", "ValidMetricFound")
    assert found["ScalingLimited"] == ("True", "TooManyReplicas")


def test_pods_that_use_less_become_fewer_after_the_window(lab: ManagedCluster) -> None:
    deployment(lab, 6, usage="20m")
    lab.settle()
    autoscaler(lab, 50, minReplicas=2)
    lab.settle(60)
    assert replicas(lab) == 6
    lab.settle(400)
    assert replicas(lab) == 2


def test_usage_near_the_target_changes_nothing(lab: ManagedCluster) -> None:
    deployment(lab, 4, usage="105m")
    lab.settle()
    autoscaler(lab, 50)
    lab.settle(120)
    assert replicas(lab) == 4


def test_without_annotations_pods_use_what_they_request(lab: ManagedCluster) -> None:
    deployment(lab, 2)
    lab.settle()
    autoscaler(lab, 100)
    lab.settle(60)
    assert replicas(lab) == 2
    metric = lab.status("HorizontalPodAutoscaler", "web")["currentMetrics"][0]
    assert metric["resource"]["current"] == {"averageValue": "200m", "averageUtilization": 100}


def test_policies_limit_how_fast_pods_become_more(lab: ManagedCluster) -> None:
    deployment(lab, 2, usage="2")
    lab.settle()
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    autoscaler(lab, 50, behavior={"scaleUp": {"policies": [policy]}})
    lab.settle(50)
    assert replicas(lab) == 3
    lab.settle(60)
    assert replicas(lab) == 4


def test_what_cannot_be_measured_is_said(lab: ManagedCluster) -> None:
    deployment(lab, 2)
    lab.settle()
    metric = {"type": "External", "external": {"metric": {"name": "queue"}, "target": {}}}
    autoscaler(lab, metrics=[metric])
    lab.settle(20)
    active = lab.condition("HorizontalPodAutoscaler", "web", "ScalingActive")
    assert active["status"] == "False"
    assert "no adapter" in active["message"]


def test_a_target_that_is_missing_is_said(lab: ManagedCluster) -> None:
    autoscaler(lab)
    lab.settle(20)
    able = lab.condition("HorizontalPodAutoscaler", "web", "AbleToScale")
    assert (able["status"], able["reason"]) == ("False", "FailedGetScale")
