"""Tables of the same objects, here and at a real API server, cell by cell.

Columns that came after 1.20 are left out of the comparison, and the restarts of pods, which have
told when the last one was since then.
"""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.harness import ADMIN, ControlPlane
from podium.lab.api.resources import TABLE
from podium.lab.kinds.tables import table

CORE, APPS = "/api/v1/namespaces/tables", "/apis/apps/v1/namespaces/tables"
PODS, NODES = f"{CORE}/pods", "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/tables/jobs"
LONG_AGO = "2020-01-01T00:00:00Z"
RUNNING: dict[str, Any] = {"running": {"startedAt": LONG_AGO}}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
READY = [{"type": "Ready", "status": "True"}]
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x", "z": "y"}},
    "spec": {
        "nodeSelector": {"q": "r"},
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}],
    },
}
SELECTOR = {
    "matchLabels": {"z": "y"},
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["x", "w"]},
        {"key": "no", "operator": "DoesNotExist"},
        {"key": "o", "operator": "NotIn", "values": ["1"]},
    ],
}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def ended(code: int, signal: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "signal": signal}}


def status(*states: dict[str, Any], phase: str = "Running", **more: Any) -> dict[str, Any]:
    """Containers a and b in these states; ready if they run."""
    listed = [
        {"name": name, "image": "i", "imageID": "", "restartCount": 0, "state": state,
         "ready": "running" in state}
        for name, state in zip("ab", states, strict=False)
    ]  # fmt: skip
    return {"phase": phase, "containerStatuses": listed, **more}


def initial(*states: dict[str, Any]) -> dict[str, Any]:
    listed = status(*states)["containerStatuses"]
    return {"phase": "Pending", "initContainerStatuses": listed}


POD_STATES: dict[str, dict[str, Any]] = {
    "running": status(RUNNING, RUNNING, conditions=READY, podIPs=[{"ip": "1.2.3.4"}],
                      podIP="1.2.3.4"),
    "crashing": status(waiting("CrashLoopBackOff"), RUNNING),
    "creating": status(waiting("ContainerCreating"), phase="Pending"),
    "completed": status(DONE, phase="Succeeded"),
    "evicted": {"phase": "Failed", "reason": "Evicted"},
    "exited": status(ended(3), ended(0, 9), phase="Failed"),
    "half-done": status(DONE, RUNNING),
    "half-done-ready": status(DONE, RUNNING, conditions=READY),
    "initial": initial(waiting("PodInitializing"), waiting("PodInitializing")),
    "initial-second": initial(ended(0), RUNNING),
    "initial-exited": initial(ended(2)),
    "initial-killed": initial(ended(2, 9)),
    "initial-waiting": initial(waiting("ImagePullBackOff")),
    "gated": {"phase": "Running", "conditions": [{"type": "g1", "status": "True"}],
              "nominatedNodeName": "n9"},
}  # fmt: skip


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": name, "image": "i"} for name in "ab"]
    spec: dict[str, Any] = {"containers": containers}
    if name.startswith("initial"):
        spec["initContainers"] = [{"name": name, "image": "i"} for name in "xy"]
    if name == "gated":
        spec["readinessGates"] = [{"conditionType": "g1"}, {"conditionType": "g2"}]
    return {"metadata": {"name": name}, "spec": spec}


def workload(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


SETS = {"selector": SELECTOR, "template": TEMPLATE}
JOB = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
INFO = {
    "bootID": "", "machineID": "", "systemUUID": "", "kubeProxyVersion": "",
    "operatingSystem": "", "architecture": "",
}  # fmt: skip
#: Where, what, and the status it is given.
MADE: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = [
    *((PODS, pod(name), found) for name, found in POD_STATES.items()),
    (NODES, {"metadata": {"name": "bare"}}, None),
    (NODES, {"metadata": {"name": "lost"}},
     {"conditions": [{"type": "Ready", "status": "Unknown"}]}),
    (
        NODES,
        {
            "metadata": {
                "name": "full",
                "labels": {"node-role.kubernetes.io/etcd": "", "kubernetes.io/role": "x"},
            },
            "spec": {"unschedulable": True},
        },
        {
            "conditions": READY,
            "addresses": [{"type": "InternalIP", "address": "1.1.1.1"}],
            "nodeInfo": {
                "kubeletVersion": "v1", "osImage": "os", "kernelVersion": "5",
                "containerRuntimeVersion": "c://1", **INFO,
            },
        },
    ),
    (f"{APPS}/deployments", workload("w", replicas=3, **SETS), {"replicas": 2, "readyReplicas": 1}),
    (f"{APPS}/replicasets", workload("w", **SETS), {"replicas": 2, "readyReplicas": 1}),
    (f"{APPS}/statefulsets", workload("w", serviceName="s", **SETS),
     {"replicas": 1, "readyReplicas": 1}),
    (f"{APPS}/daemonsets", workload("w", **SETS),
     {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 0,
      "numberReady": 1, "updatedNumberScheduled": 2, "numberAvailable": 1}),
    (f"{CORE}/replicationcontrollers",
     workload("w", selector={"app": "x"}, template=TEMPLATE), None),
    (JOBS, workload("j1", completions=3, **JOB),
     {"succeeded": 1, "startTime": LONG_AGO, "completionTime": "2020-01-01T00:01:40Z"}),
    (JOBS, workload("j2", parallelism=3, **JOB), None),
    (f"{CORE}/services", workload("np", type="NodePort", ports=[{"port": 80}],
                                  externalIPs=["9.9.9.9"]), None),
    (f"{CORE}/services", workload("lb", type="LoadBalancer", ports=[{"port": 80}],
                                  selector={"b": "1", "a": "2"}), None),
    (f"{CORE}/services", workload("headless", clusterIP="None"), None),
    (f"{CORE}/services", workload("named", type="ExternalName", externalName="a.b"), None),
    (f"{CORE}/persistentvolumeclaims",
     workload("claim", volumeName="volume", accessModes=["ReadWriteOnce"],
              resources={"requests": {"storage": "1Gi"}}),
     {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}),
    ("/api/v1/persistentvolumes",
     workload("volume", capacity={"storage": "1Gi"}, hostPath={"path": "/x"},
              accessModes=["ReadWriteMany", "ReadWriteOnce"], storageClassName="f"), None),
    ("/apis/storage.k8s.io/v1/storageclasses",
     {"metadata": {"name": "sc",
                   "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
      "provisioner": "p"}, None),
    ("/apis/storage.k8s.io/v1/csinodes",
     workload("node", drivers=[{"name": "d", "nodeID": "x", "topologyKeys": []}]), None),
    ("/apis/storage.k8s.io/v1/csidrivers", workload("driver"), None),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "p"}, "value": 5}, None),
    ("/apis/coordination.k8s.io/v1/namespaces/tables/leases",
     workload("lease", holderIdentity="me"), None),
    (f"{CORE}/configmaps", {"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}, None),
    (f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "1"}}, None),
    (f"{CORE}/podtemplates", {"metadata": {"name": "t"}, "template": TEMPLATE}, None),
    (f"{CORE}/limitranges", workload("l", limits=[{"type": "Pod", "max": {"cpu": "1"}}]), None),
    (f"{CORE}/endpoints",
     {"metadata": {"name": "e"},
      "subsets": [{"addresses": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}],
                   "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}]}, None),
    (f"{CORE}/events",
     {"metadata": {"name": "told"}, "reason": "R", "message": " m \n", "type": "Normal",
      "involvedObject": {"kind": "Pod", "name": "x", "namespace": "tables", "fieldPath": "spec"},
      "source": {"component": "c", "host": "h"}, "count": 3, "firstTimestamp": LONG_AGO,
      "lastTimestamp": LONG_AGO}, None),
]  # fmt: skip
LATER = frozenset({("Pod", "Restarts")})


def real_table(server: ControlPlane, path: str) -> Any:
    request = urllib.request.Request(
        f"{server.url}{path}",
        headers={
            "Authorization": f"Bearer {ADMIN}",
            "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io",
        },
    )
    context = ssl.create_default_context(cafile=str(server.authority))
    with urllib.request.urlopen(request, timeout=30, context=context) as response:
        return json.loads(response.read())


@pytest.fixture(scope="module")
def filled(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A server with an object of every kind in every state."""
    control_plane.post("/api/v1/namespaces", {"metadata": {"name": "tables"}})
    bound = pod("bound")
    bound["spec"]["nodeName"] = "n"
    made = [(PODS, bound, None), *MADE]
    for collection, each, state in made:
        control_plane.post(collection, each)
        if state:
            path = f"{collection}/{each['metadata']['name']}/status"
            patch = {"status": state}
            control_plane.call("PATCH", path, patch, "strategic-merge-patch+json")
    control_plane.call("DELETE", f"{PODS}/bound")
    yield control_plane
    for collection, each, _ in made:
        path = f"{collection}/{each['metadata']['name']}"
        control_plane.call("DELETE", path, {"gracePeriodSeconds": 0})


COLLECTIONS = sorted({path for path, _, _ in MADE} | {"/api/v1/namespaces"})
KINDS = {each.plural: each.kind for each in TABLE if each.group != "metrics.k8s.io"}


@pytest.mark.parametrize("path", COLLECTIONS, ids=[each.rpartition("/")[2] for each in COLLECTIONS])
def test_every_cell_is_what_the_real_server_prints(filled: ControlPlane, path: str) -> None:
    kind = KINDS[path.rpartition("/")[2]]
    real = real_table(filled, path)
    ours = table(kind, filled.get(path)["items"], now=time.time())
    names = [each["name"] for each in real["columnDefinitions"]]
    own_names = [each["name"] for each in ours["columnDefinitions"]]
    assert [each for each in own_names if each in names] == names
    assert real["rows"]
    for theirs, own in zip(real["rows"], ours["rows"], strict=True):
        cells = dict(zip(own_names, own["cells"], strict=True))
        expected = dict(zip(names, theirs["cells"], strict=True))
        wrong = {
            name: (cell, cells[name])
            for name, cell in expected.items()
            if (kind, name) not in LATER and not is_close(name, cell, cells[name])
        }
        assert not wrong, theirs["object"]["metadata"]["name"]
        assert own.get("conditions") == theirs.get("conditions")


def is_close(name: str, theirs: Any, ours: Any) -> bool:
    """Whether two cells say the same; an age may be some seconds older by the time that we look."""
    if name == "Age" and theirs != ours:
        return abs(seconds(str(theirs)) - seconds(str(ours))) < 30
    return bool(theirs == ours)


def seconds(age: str) -> int:
    """The seconds of an age of less than an hour: `50s`, `4m10s`."""
    found = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", age)
    assert found is not None, age
    return int(found[1] or 0) * 60 + int(found[2] or 0)
