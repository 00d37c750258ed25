"""Limit ranges, quotas and runtime classes at admission."""

from __future__ import annotations

from typing import Any

import pytest

from manifests import claim, deployment, manifest
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry

Json = dict[str, Any]


def pod(name: str = "web", requests: Json | None = None, limits: Json | None = None) -> Json:
    resources = {"requests": requests or {}, "limits": limits or {}}
    resources = {part: amounts for part, amounts in resources.items() if amounts}
    container = {"name": "app", "image": "app:1", "resources": resources}
    return manifest("Pod", name, spec={"containers": [container]})


def limit_range(registry: Registry, **limit: Any) -> None:
    spec = {"limits": [{"type": "Container", **limit}]}
    registry.create("LimitRange", manifest("LimitRange", "limits", spec=spec))


def quota(registry: Registry, **spec: Any) -> None:
    registry.create("ResourceQuota", manifest("ResourceQuota", "quota", spec=spec))


def refused(registry: Registry, item: Json, kind: str = "Pod") -> str:
    with pytest.raises(StatusError) as caught:
        registry.create(kind, item)
    assert caught.value.code == 403
    return caught.value.message


def resources(item: Json) -> Json:
    found: Json = item["spec"]["containers"][0]["resources"]
    return found


DEFAULTS = {
    "min": {"cpu": "50m", "memory": "100Mi"},
    "max": {"cpu": "500m", "memory": "500Mi"},
    "default": {"cpu": "500m", "memory": "500Mi"},
    "defaultRequest": {"cpu": "100m", "memory": "200Mi"},
}


def test_a_container_without_requests_gets_the_defaults_of_its_namespace(
    registry: Registry,
) -> None:
    limit_range(registry, **DEFAULTS)
    made = registry.create("Pod", pod())
    assert resources(made) == {
        "requests": {"cpu": "100m", "memory": "200Mi"},
        "limits": {"cpu": "500m", "memory": "500Mi"},
    }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container app; "
        "cpu, memory limit for container app"
    )


def test_a_limit_without_a_request_is_the_request_before_the_default(registry: Registry) -> None:
    limit_range(registry, **DEFAULTS)
    made = registry.create("Pod", pod(requests={"memory": "150Mi"}, limits={"cpu": "300m"}))
    assert resources(made) == {
        "requests": {"cpu": "300m", "memory": "150Mi"},
        "limits": {"cpu": "300m", "memory": "500Mi"},
    }


def test_a_limit_range_of_another_namespace_does_not_count(registry: Registry) -> None:
    limit_range(registry, **DEFAULTS)
    registry.create("Namespace", {"metadata": {"name": "other"}})
    item = pod()
    item["metadata"]["namespace"] = "other"
    assert resources(registry.create("Pod", item)) == {}


BOUNDS = {
    "less than the minimum": (
        {"min": {"cpu": "50m"}},
        pod(requests={"cpu": "10m"}),
        'pods "web" is forbidden: minimum cpu usage per Container is 50m, but request is 10m',
    ),
    "more than the maximum": (
        {"max": {"memory": "500Mi"}},
        pod(limits={"memory": "600Mi"}),
        'pods "web" is forbidden: maximum memory usage per Container is 500Mi, but limit is 600Mi',
    ),
    "a higher ratio": (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        pod(requests={"cpu": "100m"}, limits={"cpu": "250m"}),
        (
            'pods "web" is forbidden: cpu max limit to request ratio per Container is 2, '
            "but provided ratio is 2.500000"
        ),
    ),
    "no limit for a whole pod": (
        {"type": "Pod", "max": {"cpu": "1"}},
        pod(requests={"cpu": "100m"}),
        'pods "web" is forbidden: maximum cpu usage per Pod is 1.  No limit is specified',
    ),
    "two errors": (
        {"min": {"cpu": "50m", "memory": "1Gi"}},
        pod(requests={"cpu": "10m", "memory": "1Mi"}),
        (
            'pods "web" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, '
            "minimum memory usage per Container is 1Gi, but request is 1Mi]"
        ),
    ),
}


@pytest.mark.parametrize(("limit", "item", "message"), BOUNDS.values(), ids=BOUNDS)
def test_bounds_are_kept(registry: Registry, limit: Json, item: Json, message: str) -> None:
    limit_range(registry, **limit)
    assert refused(registry, item) == message


def test_a_claim_keeps_the_bounds_of_storage(registry: Registry) -> None:
    limit_range(registry, type="PersistentVolumeClaim", max={"storage": "10Gi"})
    large = claim("data", resources={"requests": {"storage": "20Gi"}})
    assert refused(registry, large, "PersistentVolumeClaim") == (
        'persistentvolumeclaims "data" is forbidden: maximum storage usage per '
        "PersistentVolumeClaim is 10Gi, but request is 20Gi"
    )


def test_a_quota_lets_in_as_many_as_fit(registry: Registry) -> None:
    quota(registry, hard={"requests.cpu": "1", "pods": "5"})
    registry.create("Pod", pod("a", {"cpu": "600m"}))
    assert refused(registry, pod("b", {"cpu": "500m"})) == (
        'pods "b" is forbidden: exceeded quota: quota, requested: requests.cpu=500m, '
        "used: requests.cpu=600m, limited: requests.cpu=1"
    )
    registry.create("Pod", pod("c", {"cpu": "400m"}))
    status = registry.get("ResourceQuota", "quota", "default")["status"]
    assert status == {
        "hard": {"requests.cpu": "1", "pods": "5"},
        "used": {"pods": "2", "requests.cpu": "1"},
    }


def test_a_quota_of_cpu_wants_every_container_to_ask_for_it(registry: Registry) -> None:
    quota(registry, hard={"requests.cpu": "1", "limits.memory": "1Gi"})
    assert refused(registry, pod("a")) == (
        'pods "a" is forbidden: failed quota: quota: must specify limits.memory for: app; '
        "requests.cpu for: app"
    )


def test_defaults_of_a_limit_range_satisfy_a_quota(registry: Registry) -> None:
    limit_range(registry, defaultRequest={"cpu": "400m"})
    quota(registry, hard={"requests.cpu": "1"})
    registry.create("Pod", pod("a"))
    registry.create("Pod", pod("b"))
    assert "exceeded quota" in refused(registry, pod("c"))


def test_objects_of_any_kind_are_counted(registry: Registry) -> None:
    quota(registry, hard={"count/deployments.apps": "1", "configmaps": "0"})
    assert "exceeded quota: quota, requested: configmaps=1, used: configmaps=0" in refused(
        registry, manifest("ConfigMap", "settings"), "ConfigMap"
    )
    registry.create("Deployment", deployment("a"))
    assert "count/deployments.apps=1" in refused(registry, deployment("b"), "Deployment")


SCOPES = {
    "BestEffort": ({"scopes": ["BestEffort"]}, pod("a"), pod("b", {"cpu": "1"})),
    "NotBestEffort": ({"scopes": ["NotBestEffort"]}, pod("a", {"cpu": "1"}), pod("b")),
    "Terminating": (
        {"scopes": ["Terminating"]},
        {**pod("a"), "spec": {**pod()["spec"], "activeDeadlineSeconds": 5}},
        pod("b"),
    ),
    "PriorityClass": (
        {
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                ]
            }
        },
        {**pod("a"), "spec": {**pod()["spec"], "priorityClassName": "high"}},
        pod("b"),
    ),
}


@pytest.mark.parametrize(("scope", "inside", "outside"), SCOPES.values(), ids=SCOPES)
def test_a_scope_says_which_pods_count(
    registry: Registry, scope: Json, inside: Json, outside: Json
) -> None:
    registry.create("PriorityClass", {"metadata": {"name": "high"}, "value": 10})
    quota(registry, hard={"pods": "0"}, **scope)
    registry.create("Pod", outside)
    assert "exceeded quota" in refused(registry, inside)


def test_an_object_that_is_refused_uses_nothing(registry: Registry) -> None:
    quota(registry, hard={"pods": "2"})
    broken = pod("a")
    broken["spec"]["containers"] = []
    with pytest.raises(StatusError):
        registry.create("Pod", broken)
    registry.create("Pod", pod("b"))
    assert registry.get("ResourceQuota", "quota", "default")["status"]["used"] == {"pods": "1"}


def runtime_class(registry: Registry, **more: Any) -> None:
    registry.create("RuntimeClass", {"metadata": {"name": "sandbox"}, "handler": "kata", **more})


def sandboxed(**spec: Any) -> Json:
    item = pod()
    item["spec"] |= {"runtimeClassName": "sandbox", **spec}
    return item


def test_a_pod_gets_the_overhead_of_its_runtime_class(registry: Registry) -> None:
    runtime_class(registry, overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}})
    made = registry.create("Pod", sandboxed())
    assert made["spec"]["overhead"] == {"cpu": "250m", "memory": "120Mi"}


def test_a_pod_runs_where_its_runtime_class_runs(registry: Registry) -> None:
    toleration = {"key": "kata", "operator": "Exists"}
    runtime_class(
        registry, scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [toleration]}
    )
    made = registry.create("Pod", sandboxed(nodeSelector={"zone": "a"}))
    assert made["spec"]["nodeSelector"] == {"zone": "a", "kata": "yes"}
    assert toleration in made["spec"]["tolerations"]


WRONG_CLASSES = {
    "an unknown class": (None, {}, 'pod rejected: RuntimeClass "sandbox" not found'),
    "another overhead": (
        {"overhead": {"podFixed": {"cpu": "1"}}},
        {"overhead": {"cpu": "2"}},
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ),
    "an overhead of its own": (
        {},
        {"overhead": {"cpu": "2"}},
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ),
    "another node": (
        {"scheduling": {"nodeSelector": {"kata": "yes"}}},
        {"nodeSelector": {"kata": "no"}},
        (
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; "
            "pod.spec.nodeSelector[kata] = no"
        ),
    ),
}


@pytest.mark.parametrize(("made", "spec", "why"), WRONG_CLASSES.values(), ids=WRONG_CLASSES)
def test_a_pod_that_contradicts_its_runtime_class_is_refused(
    registry: Registry, made: Json | None, spec: Json, why: str
) -> None:
    if made is not None:
        runtime_class(registry, **made)
    assert refused(registry, sandboxed(**spec)) == f'pods "web" is forbidden: {why}'


def test_an_update_of_version_0_replaces_whatever_there_is(registry: Registry) -> None:
    metadata = {"name": "settings", "namespace": "default"}
    registry.create("ConfigMap", {"metadata": dict(metadata), "data": {"a": "1"}})
    changed = {"metadata": {**metadata, "resourceVersion": "0"}, "data": {"a": "2"}}
    made = registry.update("ConfigMap", changed, name="settings", namespace="default")
    assert made["data"] == {"a": "2"}
    stale = {"metadata": {**metadata, "resourceVersion": "1"}, "data": {"a": "3"}}
    with pytest.raises(StatusError) as caught:
        registry.update("ConfigMap", stale, name="settings", namespace="default")
    assert caught.value.code == 409


def test_the_api_server_is_behind_the_service_kubernetes(registry: Registry) -> None:
    service = registry.get("Service", "kubernetes", "default")
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    assert service["spec"]["ports"][0]["port"] == 443
