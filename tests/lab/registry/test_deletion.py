"""Deleting, evicting and binding: what happens at once, what waits, what is refused."""

from __future__ import annotations

import pytest

from lab.serving import LabServer, pod
from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import JsonDict, StatusError
from podium.lab.registry.registry import Registry

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def placed(registry: Registry, name: str = "web", to: str = "n1", **about: str) -> None:
    registry.create("pods", pod(name))
    bound(registry, name, to, **about)


def bound(registry: Registry, name: str, to: str, **about: str) -> None:
    registry.bind(name, "default", to, **about)


def running(registry: Registry, name: str) -> None:
    def change(found: JsonDict) -> JsonDict:
        ready = {"type": "Ready", "status": "True"}
        return found | {"status": {"phase": "Running", "conditions": [ready]}}

    registry.modify("pods", name, "default", change=change, subresource="status")


def test_a_pod_without_node_goes_at_once(registry: Registry) -> None:
    registry.create("pods", pod("web"))

    registry.delete("pods", "web", "default")

    assert registry.find("pods", "web", "default") is None


def test_a_pod_on_a_node_waits_for_it(registry: Registry) -> None:
    placed(registry)

    registry.delete("pods", "web", "default")
    waiting = registry.get("pods", "web", "default")["metadata"]
    registry.delete("pods", "web", "default")
    again = registry.get("pods", "web", "default")["metadata"]
    registry.delete("pods", "web", "default", DeleteOptions(grace=0))

    assert waiting["deletionGracePeriodSeconds"] == 30
    assert again == waiting
    assert registry.find("pods", "web", "default") is None


def test_a_finished_pod_goes_at_once(registry: Registry) -> None:
    placed(registry)
    registry.modify(
        "pods", "web", "default",
        change=lambda found: found | {"status": {"phase": "Succeeded"}}, subresource="status",
    )  # fmt: skip

    registry.delete("pods", "web", "default")

    assert registry.find("pods", "web", "default") is None


def test_finalizers_keep_an_object_until_the_last_is_gone(registry: Registry) -> None:
    item = {"metadata": {"name": "c", "finalizers": ["a.b/c"]}, "data": {}}
    registry.create("configmaps", item)

    registry.delete("configmaps", "c", "default")
    kept = registry.get("configmaps", "c", "default")
    assert kept["metadata"]["deletionTimestamp"]
    kept["metadata"]["finalizers"] = ["a.b/c", "d.e/f"]
    with pytest.raises(StatusError, match="no new finalizers can be added"):
        registry.update("configmaps", kept)

    kept["metadata"]["finalizers"] = []
    registry.update("configmaps", kept)
    assert registry.find("configmaps", "c", "default") is None


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")]
)
def test_propagation_is_a_finalizer(registry: Registry, propagation: str, finalizer: str) -> None:
    registry.create("configmaps", {"metadata": {"name": "c"}})

    registry.delete("configmaps", "c", "default", DeleteOptions(propagation=propagation))

    assert registry.get("configmaps", "c", "default")["metadata"]["finalizers"] == [finalizer]


def test_preconditions_protect_another_object_of_the_same_name(registry: Registry) -> None:
    made = registry.create("pods", pod("web"))

    with pytest.raises(StatusError, match="might have been deleted and then recreated"):
        registry.delete("pods", "web", "default", DeleteOptions(uid="other"))
    with pytest.raises(StatusError, match="might have been modified"):
        registry.delete("pods", "web", "default", DeleteOptions(version="1"))
    registry.delete("pods", "web", "default", DeleteOptions(uid=made["metadata"]["uid"]))


def test_a_namespace_on_its_way_out_takes_nothing_new(registry: Registry) -> None:
    registry.create("namespaces", {"metadata": {"name": "shop"}})
    registry.create("configmaps", {"metadata": {"name": "c"}}, namespace="shop")

    going = registry.delete("namespaces", "shop")

    assert going["status"]["phase"] == "Terminating"
    with pytest.raises(StatusError, match="because it is being terminated") as error:
        registry.create("configmaps", {"metadata": {"name": "d"}}, namespace="shop")
    assert error.value.code == 403


def test_a_collection_is_deleted_by_selector(lab_server: LabServer) -> None:
    for number in range(4):
        item = pod(f"p{number}")
        item["metadata"]["labels"] = {"even": str(number % 2 == 0).lower()}
        lab_server.post(PODS, item)

    gone = lab_server.delete(f"{PODS}?labelSelector=even=true")

    assert [each["metadata"]["name"] for each in gone["items"]] == ["p0", "p2"]
    left = lab_server.get(PODS)
    assert [each["metadata"]["name"] for each in left["items"]] == ["p1", "p3"]


def test_binding_says_that_the_pod_is_scheduled(registry: Registry) -> None:
    placed(registry)

    found = registry.get("pods", "web", "default")

    assert found["spec"]["nodeName"] == "n1"
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_binding_another_pod_of_the_same_name_is_refused(registry: Registry) -> None:
    registry.create("pods", pod("web"))

    with pytest.raises(StatusError, match="UID in precondition: other") as error:
        bound(registry, "web", "n1", uid="other")

    assert error.value.code == 409


def test_a_gated_pod_is_not_bound(registry: Registry) -> None:
    made = registry.create("pods", pod("web", schedulingGates=[{"name": "wait"}]))

    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    with pytest.raises(StatusError, match=r"has non-empty \.spec\.schedulingGates"):
        bound(registry, "web", "n1")


def test_a_pod_that_is_leaving_is_not_bound(registry: Registry) -> None:
    item = pod("web")
    item["metadata"]["finalizers"] = ["a.b/c"]
    registry.create("pods", item)
    registry.delete("pods", "web", "default")

    with pytest.raises(StatusError, match="is being deleted, cannot be assigned to a host"):
        bound(registry, "web", "n1")


def test_evictions_stop_when_the_budget_is_spent(registry: Registry) -> None:
    for name in ("a", "b"):
        item = pod(name)
        item["metadata"]["labels"] = {"app": "web"}
        registry.create("pods", item)
        bound(registry, name, "n1")
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
