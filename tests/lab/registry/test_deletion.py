"""Deleting objects: grace periods, finalizers, propagation, preconditions, namespaces."""

from __future__ import annotations

import pytest

from lab.serving import LabServer, pod
from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry

PODS = "/api/v1/namespaces/default/pods"


def create_bound_pod(registry: Registry) -> None:
    registry.create("pods", pod("web"))
    registry.bind("web", "default", "n1")


def test_a_pod_without_node_goes_at_once(registry: Registry) -> None:
    registry.create("pods", pod("web"))

    registry.delete("pods", "web", "default")

    assert registry.find("pods", "web", "default") is None


def test_a_pod_on_a_node_waits_for_it(registry: Registry) -> None:
    create_bound_pod(registry)

    registry.delete("pods", "web", "default")
    waiting = registry.get("pods", "web", "default")["metadata"]
    registry.delete("pods", "web", "default")
    again = registry.get("pods", "web", "default")["metadata"]
    registry.delete("pods", "web", "default", DeleteOptions(grace=0))

    assert waiting["deletionGracePeriodSeconds"] == 30
    assert again == waiting
    assert registry.find("pods", "web", "default") is None


def test_a_finished_pod_goes_at_once(registry: Registry) -> None:
    create_bound_pod(registry)
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
