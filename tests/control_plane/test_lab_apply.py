"""Owners of fields, here and at a real API server: the same after each write.

Kubernetes 1.20 is older than our rules: since then selectors of nodes and services are owned as a
whole, lists take the order of what is applied, and statuses have owners of their own. The writes
here are those where both agree; the differences are in docs/lab-differences.md.
"""

from __future__ import annotations

import copy
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from control_plane.harness import ControlPlane
from podium.lab.api.status import StatusError
from podium.lab.patch.server_side_apply import apply, track_update

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "1"}],
            }
        ]
    },
}


def deployment(**spec: Any) -> dict[str, Any]:
    base = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "owned", "labels": {"app": "x"}},
        "spec": {**base, "template": copy.deepcopy(TEMPLATE), **spec},
    }


def unmanaged(made: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(made)
    made["metadata"].pop("managedFields", None)
    return made


def owners(made: dict[str, Any]) -> dict[str, Any]:
    entries = made["metadata"].get("managedFields", [])
    return {
        f"{each['manager']} {each['operation']}": (each["apiVersion"], each["fieldsV1"])
        for each in entries
    }


def causes(details: dict[str, Any]) -> list[str]:
    """In an order; the real server has none."""
    return sorted(json.dumps(each) for each in details.get("causes", []))


class Both:
    """An object at the real server, and what we would have made of each write."""

    def __init__(self, server: ControlPlane, kind: str, collection: str, name: str) -> None:
        self.server, self.kind = server, kind
        self.collection, self.path = collection, f"{collection}/{name}"
        self.live: dict[str, Any] | None = None

    def create(self, made: dict[str, Any], manager: str = "me") -> None:
        self.live = self.server.post(f"{self.collection}?fieldManager={manager}", made)
        ours = track_update(self.kind, None, unmanaged(self.live), manager=manager, now="")
        assert owners(ours) == owners(self.live)

    def patch(self, patch: dict[str, Any], manager: str) -> None:
        assert self.live is not None
        path = f"{self.path}?fieldManager={manager}"
        real = self.server.call("PATCH", path, patch, "strategic-merge-patch+json")
        ours = track_update(self.kind, self.live, unmanaged(real), manager=manager, now="")
        assert owners(ours) == owners(real)
        self.live = real

    def apply(self, config: dict[str, Any], manager: str = "app", *, force: bool = False) -> None:
        path = f"{self.path}?fieldManager={manager}" + ("&force=true" if force else "")
        code, real = self._sent(path, config)
        try:
            ours = apply(self.kind, self.live, config, manager=manager, force=force, now="")
        except StatusError as error:
            refused = (error.code, error.message, causes(error.details))
            assert refused == (code, real["message"], causes(real.get("details", {})))
            return
        assert code < 300, real
        assert owners(ours) == owners(real)
        if self.live is not None:
            for made in (ours, real):
                for name in ("managedFields", "generation", "resourceVersion"):
                    made["metadata"].pop(name, None)
            assert ours == real
        self.live = self.server.get(self.path)

    def _sent(self, path: str, config: dict[str, Any]) -> tuple[int, Any]:
        try:
            return 200, self.server.call("PATCH", path, config, "apply-patch+yaml")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def delete(self) -> None:
        self.server.call("DELETE", self.path, {"gracePeriodSeconds": 0})


def test_a_deployment_has_the_same_owners_all_its_life(control_plane: ControlPlane) -> None:
    both = Both(
        control_plane, "Deployment", "/apis/apps/v1/namespaces/default/deployments", "owned"
    )
    both.create(deployment())
    both.patch({"spec": {"replicas": 3}}, "scaler")
    both.patch({"metadata": {"annotations": {"a": "b"}}}, "annotator")
    both.patch({"metadata": {"annotations": None}}, "another")
    more = {
        "initContainers": [{"name": "i", "image": "j"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["h"]}],
    }
    both.patch({"spec": {"template": {"spec": more}}}, "more")
    both.apply(deployment())  # refused
    both.apply(deployment(replicas=3))
    both.apply(deployment(replicas=5))  # refused
    both.apply(deployment(replicas=5), force=True)
    config = deployment(replicas=5)
    container = config["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "B", "value": "2"}]
    both.apply(config)
    del container["env"]
    both.apply(config)
    both.apply(config, "third")
    container["image"] = "changed"
    both.apply(config, "third")  # refused
    both.apply({**config, "metadata": {"name": "owned", "managedFields": [{}]}})  # refused
    both.delete()


def test_a_config_map_is_applied_by_two(control_plane: ControlPlane) -> None:
    both = Both(control_plane, "ConfigMap", "/api/v1/namespaces/default/configmaps", "owned")

    def config(**data: str) -> dict[str, Any]:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}}
        return {**made, "data": data} if data else made

    both.apply(config(a="1", b="2"))
    both.apply(config(a="1"))
    both.apply(config(a="2"), "other")  # refused
    both.apply(config(a="2", c="3"), "other", force=True)
    both.apply(config(), "other")
    both.delete()


def of_apps(kind: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "x"}}
    spec = {"selector": selector, "template": TEMPLATE, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "spec": spec}


STORAGE = "/apis/storage.k8s.io/v1"
CLAIM = {
    "metadata": {"name": "d"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
CREATED: list[tuple[str, dict[str, Any]]] = [
    ("/apis/apps/v1/namespaces/default/statefulsets",
     of_apps("StatefulSet", serviceName="s", volumeClaimTemplates=[CLAIM])),
    ("/apis/apps/v1/namespaces/default/daemonsets", of_apps("DaemonSet")),
    ("/apis/apps/v1/namespaces/default/replicasets", of_apps("ReplicaSet")),
    (f"{STORAGE}/storageclasses",
     {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
      "parameters": {"a": "b"}}),
    (f"{STORAGE}/csinodes",
     {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
      "spec": {"drivers": [{"name": "d", "nodeID": "x", "topologyKeys": ["a"]}]}}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses",
     {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}),
    ("/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
     {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
      "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases",
     {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
      "spec": {"holderIdentity": "a", "leaseDurationSeconds": 3}}),
    ("/api/v1/namespaces/default/endpoints",
     {"apiVersion": "v1", "kind": "Endpoints",
      "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}]}]}),
    ("/api/v1/namespaces/default/serviceaccounts",
     {"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "a"}]}),
    ("/api/v1/namespaces/default/secrets",
     {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}}),
]  # fmt: skip


@pytest.mark.parametrize(("collection", "made"), CREATED, ids=[each["kind"] for _, each in CREATED])
def test_whoever_creates_an_object_owns_its_fields(
    control_plane: ControlPlane, collection: str, made: dict[str, Any]
) -> None:
    both = Both(control_plane, made["kind"], collection, "owned")
    both.create({**made, "metadata": {"name": "owned"}})
    both.patch({"metadata": {"labels": {"a": "b"}}}, "other")
    both.delete()
