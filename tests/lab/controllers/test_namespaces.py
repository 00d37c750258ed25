"""What every namespace has, one that is emptied before it goes, quotas that are counted again."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import ManagedCluster, pod, workload
from manifests import manifest
from podium.lab.api.options import DeleteOptions
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


def test_every_namespace_has_a_service_account_and_certificates(lab: ManagedCluster) -> None:
    lab.create("Namespace", {"metadata": {"name": "new"}})
    lab.settle()
    for namespace in ("default", "kube-system", "new"):
        assert lab.get("ServiceAccount", "default", namespace)["metadata"]["uid"]
        assert lab.get("ConfigMap", "kube-root-ca.crt", namespace)["data"]["ca.crt"]


def test_what_a_namespace_must_have_comes_back(lab: ManagedCluster) -> None:
    before = lab.get("ServiceAccount", "default")["metadata"]["uid"]
    lab.delete("ServiceAccount", "default")
    lab.delete("ConfigMap", "kube-root-ca.crt")
    lab.settle()
    assert lab.get("ServiceAccount", "default")["metadata"]["uid"] != before
    assert lab.get("ConfigMap", "kube-root-ca.crt")["data"]


def test_a_namespace_that_leaves_gets_nothing_back(lab: ManagedCluster) -> None:
    lab.create("Namespace", {"metadata": {"name": "short"}})
    lab.settle()
    lab.registry.delete("Namespace", "short")
    lab.settle()
    assert lab.registry.find("Namespace", "short") is None
    assert lab.registry.list("ConfigMap", "short") == []


def quota(hard: dict[str, str]) -> dict[str, object]:
    return manifest("ResourceQuota", "quota", spec={"hard": hard})


def test_a_quota_is_counted_again_when_pods_leave_or_end(lab: ManagedCluster) -> None:
    lab.create("ResourceQuota", quota({"pods": "2", "count/pods": "5"}))
    lab.create("Pod", pod("a"))
    short = pod("b")
    short["metadata"]["annotations"] = {"lab.podium/run-seconds": "1"}
    lab.create("Pod", short)
    assert lab.status("ResourceQuota", "quota")["used"] == {"count/pods": "2", "pods": "2"}
    lab.settle(10)
    assert lab.status("ResourceQuota", "quota")["used"] == {"count/pods": "2", "pods": "1"}
    lab.registry.delete("Pod", "a", "default")
    lab.settle()
    assert lab.status("ResourceQuota", "quota")["used"] == {"count/pods": "1", "pods": "0"}


def test_a_quota_that_changes_is_counted_again(lab: ManagedCluster) -> None:
    lab.create("Pod", pod("a"))
    lab.create("ResourceQuota", quota({"pods": "2"}))
    lab.settle()
    assert lab.status("ResourceQuota", "quota") == {"hard": {"pods": "2"}, "used": {"pods": "1"}}
    lab.edit("ResourceQuota", "quota", hard={"count/pods": "3"})
    lab.settle()
    assert lab.status("ResourceQuota", "quota")["used"] == {"count/pods": "1"}


def sleeper(seconds: int, grace: int) -> dict[str, object]:
    made = pod("slow", terminationGracePeriodSeconds=grace)
    hook = {"preStop": {"sleep": {"seconds": seconds}}}
    made["spec"]["containers"][0]["lifecycle"] = hook
    return made


@pytest.mark.parametrize(
    ("seconds", "grace", "stays", "then"),
    [(20, 60, 15, 10), (100, 10, 7, 5)],
    ids=["hook", "grace"],
)
def test_a_deleted_pod_stays_until_its_hook_or_its_grace_period_ends(
    lab: ManagedCluster, seconds: int, grace: int, stays: float, then: float
) -> None:
    lab.create("Pod", sleeper(seconds, grace=grace))
    lab.settle()
    lab.registry.delete("Pod", "slow", "default")
    lab.settle(stays)
    assert lab.get("Pod", "slow")["metadata"]["deletionGracePeriodSeconds"] == grace
    lab.settle(then)
    assert lab.names() == []


def test_a_second_deletion_with_a_shorter_grace_period_ends_it_sooner(lab: ManagedCluster) -> None:
    lab.create("Pod", sleeper(100, grace=100))
    lab.settle()
    lab.registry.delete("Pod", "slow", "default")
    lab.settle(5)
    lab.registry.delete("Pod", "slow", "default", DeleteOptions(grace=3))
    lab.settle(5)
    assert lab.names() == []
