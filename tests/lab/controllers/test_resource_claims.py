"""Claims are made from templates, and released when their pods are gone or finished."""

from __future__ import annotations

from typing import Any

import pytest

from lab.controllers.managed_cluster import Json, ManagedCluster
from manifests import device_claim, manifest
from podium.objects.kinds.devices import CLAIM_FINALIZER

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n0", "device": "gpu-0"}


def template(**metadata: Any) -> Json:
    spec = {"metadata": metadata, "spec": device_claim("")["spec"]}
    return manifest("ResourceClaimTemplate", "one-gpu", spec=spec)


def claim(name: str = "shared") -> Json:
    return device_claim(name)


def pod(name: str = "web", *claims: Json, **spec: Any) -> Json:
    wanted = claims or ({"name": "gpu", "resourceClaimTemplateName": "one-gpu"},)
    container = {"name": "app", "image": "app"}
    own: Json = {"containers": [container], "resourceClaims": list(wanted)}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**own, **spec}}


def allocate(lab: ManagedCluster, name: str, *pods: str) -> None:
    """What the scheduler writes: the finalizer, then allocation and reservations."""

    def protect(item: Json) -> Json:
        item["metadata"]["finalizers"] = [CLAIM_FINALIZER]
        return item

    lab.registry.modify("ResourceClaim", name, "default", change=protect)
    consumers = [
        {"resource": "pods", "name": each, "uid": lab.get("Pod", each)["metadata"]["uid"]}
        for each in pods
    ]
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": consumers}
    lab.report("ResourceClaim", name, status)


def claims(lab: ManagedCluster) -> list[Json]:
    return lab.registry.list("ResourceClaim")


@pytest.fixture
def waiting() -> ManagedCluster:
    """A cluster without a scheduler."""
    return ManagedCluster(binds=False)


def test_a_claim_is_made_for_each_entry_that_names_a_template(waiting: ManagedCluster) -> None:
    waiting.create("ResourceClaimTemplate", template(labels={"team": "ml"}, annotations={"a": "b"}))
    waiting.create("Pod", pod())
    waiting.settle()

    [made] = claims(waiting)
    about = made["metadata"]
    assert about["name"].startswith("web-gpu-")
    assert len(about["name"]) == len("web-gpu-") + 5
    assert about["labels"] == {"team": "ml"}
    assert about["annotations"] == {"a": "b", "resource.kubernetes.io/pod-claim-name": "gpu"}
    uid = waiting.get("Pod", "web")["metadata"]["uid"]
    assert about["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": True}
    ]
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert waiting.status("Pod", "web")["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": about["name"]}
    ]


def test_long_names_are_shortened_in_both_parts(waiting: ManagedCluster) -> None:
    waiting.create("ResourceClaimTemplate", template())
    entry = {"name": "e" * 40, "resourceClaimTemplateName": "one-gpu"}
    waiting.create("Pod", pod("p" * 60, entry))
    waiting.settle()

    [made] = claims(waiting)
    name = made["metadata"]["name"]
    assert len(name) <= 63
    assert name.startswith("p" * 33 + "-" + "e" * 22)


def test_a_pod_whose_template_is_missing_is_told_so_and_served_later(
    waiting: ManagedCluster,
) -> None:
    waiting.create("Pod", pod())
    waiting.settle()

    [event] = waiting.registry.list("Event")
    assert event["reason"] == "FailedResourceClaimCreation"
    assert event["message"] == (
        'PodResourceClaim gpu: resource claim template "one-gpu": '
        'resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
    )
    waiting.create("ResourceClaimTemplate", template())
    waiting.settle()
    assert len(claims(waiting)) == 1


def test_a_claim_is_made_once_even_if_the_controllers_start_anew(waiting: ManagedCluster) -> None:
    waiting.create("ResourceClaimTemplate", template())
    waiting.create("Pod", pod())
    waiting.controllers.sync_ready()

    def forget(item: Json) -> Json:
        item["status"].pop("resourceClaimStatuses")
        return item

    waiting.registry.modify("Pod", "web", "default", change=forget, subresource="status")
    waiting.restart()
    waiting.settle()

    assert len(claims(waiting)) == 1
    assert len(waiting.status("Pod", "web")["resourceClaimStatuses"]) == 1


def test_a_claim_that_was_deleted_is_made_again(waiting: ManagedCluster) -> None:
    waiting.create("ResourceClaimTemplate", template())
    waiting.create("Pod", pod())
    waiting.settle()
    [first] = claims(waiting)
    waiting.delete("ResourceClaim", first["metadata"]["name"])
    waiting.settle()

    [second] = claims(waiting)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    noted = waiting.status("Pod", "web")["resourceClaimStatuses"]
    assert noted == [{"name": "gpu", "resourceClaimName": second["metadata"]["name"]}]


def test_a_claim_made_for_a_pod_goes_with_it(lab: ManagedCluster) -> None:
    lab.create("ResourceClaimTemplate", template())
    lab.create("Pod", pod())
    lab.settle()
    [made] = claims(lab)
    allocate(lab, made["metadata"]["name"], "web")
    lab.settle()
    assert len(claims(lab)) == 1

    lab.delete("Pod", "web")
    lab.settle(60.0)
    assert claims(lab) == []


def test_a_claim_made_for_a_pod_is_deleted_when_the_pod_is_finished(lab: ManagedCluster) -> None:
    lab.create("ResourceClaimTemplate", template())
    item = pod(restartPolicy="Never")
    item["metadata"]["annotations"] = {"lab.podium/run-seconds": "30"}
    lab.create("Pod", item)
    lab.settle()
    [made] = claims(lab)
    allocate(lab, made["metadata"]["name"], "web")
    lab.settle(60.0)

    assert lab.status("Pod", "web")["phase"] == "Succeeded"
    assert claims(lab) == []


def test_a_shared_claim_is_deallocated_with_its_last_pod(lab: ManagedCluster) -> None:
    lab.create("ResourceClaim", claim())
    for name in ("one", "two"):
        lab.create("Pod", pod(name, {"name": "gpu", "resourceClaimName": "shared"}))
    lab.settle()
    allocate(lab, "shared", "one", "two")
    lab.settle()
    lab.delete("Pod", "one")
    lab.settle(60.0)
    [left] = lab.status("ResourceClaim", "shared")["reservedFor"]
    assert left["name"] == "two"
    assert lab.get("ResourceClaim", "shared")["metadata"]["finalizers"] == [CLAIM_FINALIZER]

    lab.delete("Pod", "two")
    lab.settle(60.0)
    found = lab.get("ResourceClaim", "shared")
    assert found["status"] == {}
    assert "finalizers" not in found["metadata"]


def test_a_reservation_for_a_pod_that_is_gone_is_removed_at_the_start(
    waiting: ManagedCluster,
) -> None:
    waiting.create("ResourceClaim", claim())
    waiting.create("Pod", pod("web", {"name": "gpu", "resourceClaimName": "shared"}))
    waiting.settle()
    waiting.controllers.unsubscribe()
    allocate(waiting, "shared", "web")
    waiting.delete("Pod", "web")
    waiting.restart()
    waiting.settle()

    assert waiting.status("ResourceClaim", "shared") == {}


def test_a_deleted_claim_stays_as_long_as_a_pod_uses_it(lab: ManagedCluster) -> None:
    lab.create("ResourceClaim", claim())
    lab.create("Pod", pod("web", {"name": "gpu", "resourceClaimName": "shared"}))
    lab.settle()
    allocate(lab, "shared", "web")
    lab.delete("ResourceClaim", "shared")
    lab.settle()
    assert len(claims(lab)) == 1

    lab.delete("Pod", "web")
    lab.settle(60.0)
    assert claims(lab) == []


def test_an_allocated_claim_is_reserved_for_a_pod_that_was_bound_by_hand(
    waiting: ManagedCluster,
) -> None:
    waiting.create("ResourceClaim", claim())
    allocate(waiting, "shared")
    waiting.create("Pod", pod("web", {"name": "gpu", "resourceClaimName": "shared"}, nodeName="n0"))
    waiting.settle()

    [consumer] = waiting.status("ResourceClaim", "shared")["reservedFor"]
    assert (consumer["resource"], consumer["name"]) == ("pods", "web")


def test_the_claim_for_extended_resources_goes_with_its_pod(lab: ManagedCluster) -> None:
    item = pod()
    del item["spec"]["resourceClaims"]
    made = lab.create("Pod", item)
    uid = made["metadata"]["uid"]
    extended = claim("web-extended-resources-x")
    extended["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": True}
    ]
    lab.create("ResourceClaim", extended)
    status = {"requestMappings": [], "resourceClaimName": "web-extended-resources-x"}
    lab.report("Pod", "web", {"extendedResourceClaimStatus": status})
    lab.settle()
    allocate(lab, "web-extended-resources-x", "web")
    lab.settle()
    assert len(claims(lab)) == 1

    lab.report("Pod", "web", {"phase": "Succeeded"})
    lab.settle(60.0)
    assert claims(lab) == []
