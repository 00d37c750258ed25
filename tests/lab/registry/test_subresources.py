"""Binding a pod to a node, and evicting pods within their disruption budgets."""

from __future__ import annotations

import pytest

from lab.serving import pod
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject


def test_binding_says_that_the_pod_is_scheduled(registry: Registry) -> None:
    registry.create("pods", pod("web"))
    registry.bind("web", "default", "n1")

    found = registry.get("pods", "web", "default")

    assert found["spec"]["nodeName"] == "n1"
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_binding_another_pod_of_the_same_name_is_refused(registry: Registry) -> None:
    registry.create("pods", pod("web"))

    with pytest.raises(StatusError, match="UID in precondition: other") as error:
        registry.bind("web", "default", "n1", uid="other")

    assert error.value.code == 409


def test_a_gated_pod_is_not_bound(registry: Registry) -> None:
    made = registry.create("pods", pod("web", schedulingGates=[{"name": "wait"}]))

    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    with pytest.raises(StatusError, match=r"has non-empty \.spec\.schedulingGates"):
        registry.bind("web", "default", "n1")


def test_a_pod_that_is_leaving_is_not_bound(registry: Registry) -> None:
    item = pod("web")
    item["metadata"]["finalizers"] = ["a.b/c"]
    registry.create("pods", item)
    registry.delete("pods", "web", "default")

    with pytest.raises(StatusError, match="is being deleted, cannot be assigned to a host"):
        registry.bind("web", "default", "n1")


def running(registry: Registry, name: str) -> None:
    def change(found: JsonObject) -> JsonObject:
        ready = {"type": "Ready", "status": "True"}
        return found | {"status": {"phase": "Running", "conditions": [ready]}}

    registry.modify("pods", name, "default", change=change, subresource="status")


def test_evictions_stop_when_the_budget_is_spent(registry: Registry) -> None:
    for name in ("a", "b"):
        item = pod(name)
        item["metadata"]["labels"] = {"app": "web"}
        registry.create("pods", item)
        registry.bind(name, "default", "n1")
        running(registry, name)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    registry.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": spec})
    status = {"disruptionsAllowed": 1, "observedGeneration": 1, "desiredHealthy": 1,
              "currentHealthy": 2, "expectedPods": 2}  # fmt: skip
    registry.modify(
        "poddisruptionbudgets", "b", "default",
        change=lambda found: found | {"status": status}, subresource="status",
    )  # fmt: skip

    registry.evict("a", "default")
    with pytest.raises(StatusError, match="would violate the pod's disruption budget") as error:
        registry.evict("b", "default")

    assert error.value.code == 429
    assert registry.get("pods", "a", "default")["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in registry.get("pods", "b", "default")["metadata"]
