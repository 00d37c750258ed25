"""The same patch, here and at a real API server: the same object comes out, or the same refusal."""

from __future__ import annotations

import copy
import json
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.harness import ControlPlane
from podium.lab.api.status import StatusError
from podium.lab.patch.patches import apply_patch

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "patched", "labels": {"a": "b"}, "finalizers": ["x/a", "x/b"]},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {
                "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "nodeSelector": {"x": "y"},
                "volumes": [
                    {"name": "v", "emptyDir": {}},
                    {"name": "w", "configMap": {"name": "c"}},
                ],
                "containers": [
                    {
                        "name": "c1",
                        "image": "i1",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "p"}],
                        "args": ["1", "2"],
                    },
                    {"name": "c2", "image": "i2"},
                ],
            },
        },
    },
}
CONTAINERS = "/spec/template/spec/containers"
NEW = {"name": "x", "image": "y"}
#: What a patch says about the pods of a deployment.
OF_PODS: list[dict[str, Any]] = [
    {"containers": [{"name": "c2", "image": "new"}]},
    {"containers": [{"name": "c3", "image": "new"}]},
    {"containers": [{"name": "c1", "$patch": "delete"}]},
    {"containers": [{"name": "c9", "image": "z"}, {"$patch": "replace"}]},
    {"$setElementOrder/containers": [{"name": "c2"}, {"name": "c1"}]},
    {
        "$setElementOrder/containers": [{"name": "c2"}, {"name": "c3"}, {"name": "c1"}],
        "containers": [{"name": "c3", "image": "q"}],
    },
    {
        "$setElementOrder/containers": [{"name": "c2"}, {"name": "c1"}],
        "containers": [{"name": "c3", "image": "q"}],
    },
    {"containers": [{"name": "c1", "env": [{"name": "B", "value": "x"}, {"name": "C"}]}]},
    {"containers": [{"name": "c1", "env": [{"name": "B", "$patch": "delete"}]}]},
    {"containers": [{"name": "c1", "ports": [{"containerPort": 80, "protocol": "UDP"}]}]},
    {"containers": [{"name": "c1", "ports": [{"containerPort": 81, "hostPort": 8081}]}]},
    {"containers": [{"name": "c1", "args": ["3"]}]},
    {"containers": [{"name": "c1", "resources": {"limits": {"cpu": "1"}}}]},
    {"containers": [{"image": "nokey"}]},
    {"containers": ["x"]},
    {"containers": [{"name": "c1", "$patch": "foo"}]},
    {"containers": [{"name": "c1", "$patch": "merge"}]},
    {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
    {"volumes": [{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}}]},
    {"volumes": [{"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}}]},
    {"tolerations": [{"key": "b"}]},
    {"nodeSelector": {"z": "1"}},
    {"nodeSelector": {"$patch": "replace", "z": "1"}},
    {"nodeSelector": {"$patch": "delete"}},
    {"nodeSelector": None, "tolerations": None},
    {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["b"]}, {"ip": "2.2.2.2"}]},
]
STRATEGIC: list[Any] = [
    *({"spec": {"template": {"spec": each}}} for each in OF_PODS),
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}},
    {"metadata": {"finalizers": ["x/c"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}},
    {"metadata": {"$setElementOrder/finalizers": ["x/b", "x/a"]}},
    {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["x/a"],
            "$setElementOrder/finalizers": ["x/z", "x/b"],
            "finalizers": ["x/z"],
        }
    },
    {"metadata": {"labels": {"a": None, "q": "r"}}},
    {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
        }
    },
    {"$patch": "wat"},
    [1],
    "x",
]
MERGES: list[Any] = [
    {"spec": {"replicas": 5}},
    {"spec": {"template": {"spec": {"containers": [NEW]}}}},
    {"metadata": {"labels": {"a": None, "q": "r"}}},
    {"spec": {"template": {"spec": {"nodeSelector": None}}}},
    "x",
]
OPERATIONS: list[Any] = [
    [{"op": "replace", "path": "/spec/replicas", "value": 7}],
    [{"op": "add", "path": "/metadata/labels/z~1y", "value": "1"}],
    [{"op": "remove", "path": "/metadata/labels/a"}],
    [{"op": "test", "path": "/spec/replicas", "value": 3}],
    [
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "add", "path": f"{CONTAINERS}/-", "value": NEW},
    ],
    *([{"op": "add", "path": f"{CONTAINERS}/{at}", "value": NEW}] for at in ("-1", "2", "3")),
    [{"op": "remove", "path": f"{CONTAINERS}/-1"}],
    [{"op": "remove", "path": "/nope"}],
    [{"op": "add", "path": "/metadata/no/pe", "value": "1"}],
    [
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"},
        {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/c"},
    ],
    [{"op": "wat", "path": "/metadata"}],
    [{"path": "/metadata"}],
    {"a": 1},
    "x",
    [1],
    [{"op": "test", "path": "/metadata/nope", "value": None}],
    [{"op": "test", "path": "/metadata/labels/a"}],
    [{"op": "add", "path": "/metadata/labels/n", "value": None}],
    [{"op": "remove", "path": ""}],
    [{"op": "add", "path": "metadata", "value": "1"}],
]
FORMS = {
    "strategic-merge-patch+json": STRATEGIC,
    "merge-patch+json": MERGES,
    "json-patch+json": OPERATIONS,
}
CASES = [(form, patch) for form, patches in FORMS.items() for patch in patches]


@pytest.fixture
def deployment(control_plane: ControlPlane) -> Iterator[dict[str, Any]]:
    yield control_plane.post(DEPLOYMENTS, DEPLOYMENT)
    path = f"{DEPLOYMENTS}/patched"
    none = [{"op": "add", "path": "/metadata/finalizers", "value": []}]
    control_plane.call("PATCH", path, none, "json-patch+json")
    control_plane.call("DELETE", path)


def plain(made: dict[str, Any]) -> dict[str, Any]:
    """Without what a server says about itself."""
    made = copy.deepcopy(made)
    for name in ("managedFields", "resourceVersion", "generation"):
        made["metadata"].pop(name, None)
    return made


def sent(control_plane: ControlPlane, path: str, patch: Any, form: str) -> tuple[int, Any]:
    try:
        return 200, control_plane.call("PATCH", path, patch, form)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(("form", "patch"), CASES, ids=lambda each: json.dumps(each)[:70])
def test_a_patch_gives_what_the_real_server_gives(
    control_plane: ControlPlane, deployment: dict[str, Any], form: str, patch: Any
) -> None:
    path = f"{DEPLOYMENTS}/patched"
    code, real = sent(control_plane, path, patch, form)
    if code != 200:
        with pytest.raises(StatusError) as caught:
            apply_patch("Deployment", f"application/{form}", deployment, patch)
        assert caught.value.message == real["message"]
        # Some refusals are mistakes of its own to the real server; here they are the client's.
        assert caught.value.code == (code if code != 500 else 400)
        return
    made = apply_patch("Deployment", f"application/{form}", deployment, patch)
    made["metadata"]["resourceVersion"] = real["metadata"]["resourceVersion"]
    # What the patch left out is filled in by the real server's own defaults.
    filled = control_plane.call("PUT", f"{path}?dryRun=All", made)
    assert plain(filled) == plain(real)
