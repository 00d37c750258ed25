"""The same requests to the lab and to a real kube-apiserver are answered alike.

Code, reason and sentence are compared. Where they differ on purpose, the case says so: the real
program here is 1.20, and the lab follows later releases where they changed; two plain mistakes of
the real program (500 for what the client got wrong) are not repeated.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any, NamedTuple

import pytest

from control_plane.harness import ADMIN, ControlPlane
from lab.serving import LabServer, node, pod

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPS = "/apis/apps/v1/namespaces/default/"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MERGE = "application/merge-patch+json"


class Case(NamedTuple):
    """A request; *differs* is the reason why the responses are not equal."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    differs: str = ""


def container(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "a", "image": "b", **fields}]


def bound(name: str, to: str = "n", **about: str) -> dict[str, Any]:
    target = {"kind": "Node", "name": to}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **about},
        "target": target,
    }


def workload(name: str = "w", kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": container()}}
    filled = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": filled}


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def labelled(labels: dict[str, str]) -> dict[str, Any]:
    made = pod("x")
    made["metadata"]["labels"] = labels
    return made


STRUCTS = "structs are shown as JSON since 1.31, as Go writes them before"
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "a", "operator": "X"},
                        {"key": "a", "operator": "In"},
                        {"key": "a", "operator": "Exists", "values": ["a"]},
                        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                        {"key": "a b", "operator": "Exists"},
                    ],
                    "matchFields": [
                        {"key": "metadata.foo", "operator": "In", "values": ["a"]},
                        {"key": "metadata.name", "operator": "Exists"},
                    ],
                }
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}],
    },
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]},
}
TOLERATIONS = [
    {"key": "a", "operator": "X"},
    {"operator": "Equal", "value": "x"},
    {"key": "a b", "operator": "Exists"},
    {"key": "a", "effect": "Foo", "value": "v v"},
    {"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"},
]
SPREADING = [
    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"},
    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"},
]
PORTS = [{"containerPort": 70000, "protocol": "X", "hostPort": -1, "name": "UPPER"}]
MOUNTS = [{"name": "zz", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}, {"mountPath": ""}]
VARIABLES = [{"name": ""}, {"name": "a=b"}]
LIMITS = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
VOLUMES = [
    {"name": "v"},
    {"name": "v", "hostPath": {"path": ""}},
    {"name": "B_", "emptyDir": {}},
    {"name": "pvc", "persistentVolumeClaim": {"claimName": ""}},
]
TAINTS = [{"key": "a", "value": "b b", "effect": "NoSchedule"}, {"key": "", "effect": "X"}]
RENAMED = "a field has its own name since 1.24, and was given that of its neighbour before"


def post(path: str, body: Any, content_type: str = "application/json", differs: str = "") -> Case:
    return Case("POST", path, body, content_type, differs)


def wrong_pod(differs: str = "", **spec: Any) -> Case:
    return post(PODS, pod("x", **spec), differs=differs)


def wrong_container(differs: str = "", **fields: Any) -> Case:
    return wrong_pod(differs, containers=container(**fields))


CASES = {
    # not there
    "a pod that is not there": Case("GET", f"{PODS}/nope"),
    "a deployment that is not there": Case("GET", f"{DEPLOYMENTS}/nope"),
    "a resource that is not served": Case("GET", "/api/v1/foos"),
    "deleting what is not there": Case("DELETE", f"{PODS}/nope"),
    "replacing what is not there": Case("PUT", f"{PODS}/nope", pod("nope")),
    "patching what is not there": Case("PATCH", f"{PODS}/nope", {}, MERGE),
    "binding what is not there": post(f"{PODS}/nope/binding", bound("nope")),
    "evicting what is not there": post(
        f"{PODS}/nope/eviction",
        {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "nope"}},
    ),
    "a namespace that is not there": post("/api/v1/namespaces/nope/pods", pod()),
    # methods and addresses
    "creating in all namespaces": post("/api/v1/pods", pod()),
    "replacing a collection": Case("PUT", PODS, pod()),
    "creating with a name in the path": post(f"{PODS}/x", pod()),
    "a limit that is no number": Case("GET", f"{PODS}?limit=x"),
    "a version that is no number": Case(
        "GET", f"{PODS}?resourceVersion=x", differs="400 instead of 500"
    ),
    "dry run with another word": post(f"{PODS}?dryRun=Foo", pod(), differs=STRUCTS),
    "a manager with a long name": post(f"{PODS}?fieldManager={'a' * 200}", pod()),
    # selectors
    "a label selector with a word too many": Case("GET", f"{PODS}?labelSelector=a%20b"),
    "a label selector without bracket": Case("GET", f"{PODS}?labelSelector=a%20in%20x"),
    "a label selector of a comma": Case("GET", f"{PODS}?labelSelector=,"),
    "a field that pods cannot be selected by": Case("GET", f"{PODS}?fieldSelector=spec.foo=1"),
    "a field selector without sign": Case("GET", f"{PODS}?fieldSelector=foo"),
    "a field of deployments": Case("GET", f"{DEPLOYMENTS}?fieldSelector=spec.foo=1"),
    "a field of jobs": Case("GET", f"{JOBS}?fieldSelector=spec.foo=1"),
    "a field of nodes": Case("GET", "/api/v1/nodes?fieldSelector=spec.foo=1"),
    "a field of events": Case("GET", "/api/v1/events?fieldSelector=foo=1"),
    # bodies
    "no body": post(PODS, b""),
    "another kind": post(PODS, {**pod(), "kind": "Node"}, differs="internal names"),
    "another version": post(PODS, {**pod(), "apiVersion": "v2"}, differs="internal names"),
    "text where the specification belongs": post(
        PODS, {**pod(), "spec": "x"}, differs="the decoder's words, as of 1.23"
    ),
    "a quantity that is none": wrong_pod(
        containers=container(resources={"requests": {"cpu": "2x"}}),
        differs="the decoder's words, as of 1.23",
    ),
    "a body of an unknown media type": post(PODS, pod(), "text/plain"),
    "another namespace in the object": post(
        PODS, {**pod(), "metadata": {"name": "x", "namespace": "y"}}
    ),
    "another name in the object": Case("PUT", f"{PODS}/taken", pod("other")),
    # pods
    "no image": wrong_pod(containers=[{"name": "a"}]),
    "no containers": wrong_pod(containers=[]),
    "no name": post(PODS, {"metadata": {}, "spec": {}}),
    "a name in upper case": post(PODS, pod("X_y")),
    "a name that is too long": post(PODS, pod("a" * 254)),
    # One at a time: the real program checks them in any order.
    "a label with blanks": post(PODS, labelled({"a b": "c d"})),
    "a label without name": post(PODS, labelled({"q/": "a" * 64})),
    "a container twice": wrong_pod(containers=container() * 2),
    "a container without name": wrong_pod(containers=[{"image": "b"}]),
    "a request beyond the limit": wrong_container(resources=LIMITS),
    "a negative request": wrong_container(resources={"requests": {"cpu": "-2"}}),
    "a resource without prefix": wrong_container(resources={"requests": {"foo": "2"}}),
    "an extended resource without limit": wrong_container(resources={"requests": {"x.y/foo": "2"}}),
    "ports beyond the range": wrong_container(ports=PORTS),
    "a port of nothing": wrong_container(ports=[{}]),
    "policies that do not exist": wrong_pod(restartPolicy="No", dnsPolicy="No"),
    "tolerations of all wrong kinds": wrong_pod(tolerations=TOLERATIONS),
    "affinity of all wrong kinds": wrong_pod(affinity=AFFINITY),
    "spreading of all wrong kinds": wrong_pod(topologySpreadConstraints=SPREADING),
    "a node selector with blanks": wrong_pod(nodeSelector={"a b": "c d"}),
    "volumes and mounts": wrong_pod(volumes=VOLUMES, containers=container(volumeMounts=MOUNTS)),
    "variables": wrong_container(env=VARIABLES),
    "a pull policy": wrong_container(imagePullPolicy="Foo"),
    "a probe without handler": wrong_container(readinessProbe={}),
    "names of other things": wrong_pod(nodeName="X_y", serviceAccountName="X Y", hostname="A_b"),
    # conflicts
    "a name that is taken": post(PODS, pod("taken")),
    "an old version": Case(
        "PUT",
        f"{PODS}/taken",
        {**pod("taken"), "metadata": {"name": "taken", "resourceVersion": "1"}},
    ),
    "a patch of an old version": Case(
        "PATCH", f"{PODS}/taken", {"metadata": {"resourceVersion": "1"}}, MERGE
    ),
    "a patch of the name": Case("PATCH", f"{PODS}/taken", {"metadata": {"name": "z"}}, MERGE),
    "a specification that may not change": Case(
        "PATCH",
        f"{PODS}/taken",
        {"spec": {"hostNetwork": True}},
        MERGE,
        differs="later releases name more fields that may, and the difference is left out",
    ),
    "deleting another with the same name": Case(
        "DELETE", f"{PODS}/taken", {"preconditions": {"uid": "z"}}, differs="the uid"
    ),
    "deleting in a way that is none": Case("DELETE", f"{PODS}/taken?propagationPolicy=Foo"),
    "binding twice": post(f"{PODS}/bound/binding", bound("bound", "m")),
    "binding by another name": post(f"{PODS}/bound/binding", bound("p8")),
    # workloads
    "a deployment of nothing": post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {}}),
    "a selector that selects others": post(
        DEPLOYMENTS, workload(selector={"matchLabels": {"a": "c"}})
    ),
    "a selector that is missing": post(DEPLOYMENTS, workload(selector=None)),
    "negative replicas": post(DEPLOYMENTS, workload(replicas=-1, minReadySeconds=-1)),
    "a strategy with what it cannot have": post(
        DEPLOYMENTS, workload(strategy={"type": "Recreate", "rollingUpdate": {}})
    ),
    "a selector that changes": Case(
        "PATCH",
        f"{DEPLOYMENTS}/web",
        {
            "spec": {
                "selector": {"matchLabels": {"a": "z"}},
                "template": {"metadata": {"labels": {"a": "z"}}},
            }
        },
        MERGE,
        differs=STRUCTS,
    ),
    "a job that always restarts": post(
        JOBS,
        {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": container()}}}},
    ),
    "a job of less than nothing": post(
        JOBS,
        {
            "metadata": {"name": "j"},
            "spec": {
                "parallelism": -1,
                "backoffLimit": -1,
                "template": {"spec": {"restartPolicy": "Never", "containers": container()}},
            },
        },
    ),
    # others
    "a service with a number for a name": post(SERVICES, service("1a")),
    "a service without ports": post(SERVICES, service(ports=[])),
    "a service of no type": post(SERVICES, service(type="X", sessionAffinity="Y")),
    "ports of a service": post(SERVICES, service(ports=[{"port": 0, "protocol": "X"}])),
    "a claim of nothing": post(CLAIMS, {"metadata": {"name": "c"}, "spec": {}}),
    "a node in upper case": post("/api/v1/nodes", node("N_1")),
    "a node with less than nothing": post(
        "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "-1"}}}
    ),
    "a storage class of nothing": post(STORAGE, {"metadata": {"name": "s"}}),
    "a storage class of wrong words": post(
        STORAGE,
        {
            "metadata": {"name": "s"},
            "provisioner": "a b",
            "reclaimPolicy": "X",
            "volumeBindingMode": "Y",
        },
    ),
    "a budget of less than nothing": post(
        BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": -1}}
    ),
    "a priority beyond the highest": post(
        CLASSES, {"metadata": {"name": "p"}, "value": 2_000_000_000}
    ),
    "a priority with a reserved name": post(
        CLASSES, {"metadata": {"name": "system-x"}, "value": 2}
    ),
    "a priority policy": post(
        CLASSES, {"metadata": {"name": "p"}, "value": 2, "preemptionPolicy": "X"}
    ),
    "a namespace with a dot": post("/api/v1/namespaces", {"metadata": {"name": "A.b"}}),
    "the default namespace may not go": Case("DELETE", "/api/v1/namespaces/default"),
    "a lease must say which version it replaces": Case(
        "PUT", f"{LEASES}/lease", {"metadata": {"name": "lease"}}, differs="0x0 is a number"
    ),
    "an event elsewhere": post(
        "/api/v1/namespaces/default/events",
        {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "other"}},
    ),
    "a config map with a blank": post(
        "/api/v1/namespaces/default/configmaps",
        {"metadata": {"name": "e"}, "data": {"a b": "c"}},
    ),
}

#: The objects that both servers have before the requests.
FOUND = (
    (PODS, pod("taken")),
    (PODS, pod("bound")),
    (f"{PODS}/bound/binding", bound("bound")),
    (DEPLOYMENTS, workload("web")),
    (LEASES, {"metadata": {"name": "lease"}}),
)


def real(plane: ControlPlane, case: Case) -> tuple[int, Any]:
    data = case.body if isinstance(case.body, bytes | None) else json.dumps(case.body).encode()
    request = urllib.request.Request(
        f"{plane.url}{case.path}",
        data,
        {"Authorization": f"Bearer {ADMIN}", "Content-Type": case.content_type},
        method=case.method,
    )
    context = ssl.create_default_context(cafile=str(plane.authority))
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.fixture(scope="module")
def both(control_plane: ControlPlane) -> Any:
    """The real API server and the lab, with the same objects."""
    with LabServer() as lab:
        for path, body in FOUND:
            control_plane.post(path, body)
            lab.post(path, body)
        yield control_plane, lab


@pytest.mark.parametrize("name", CASES)
def test_the_lab_answers_like_the_real_program(both: Any, name: str) -> None:
    plane, lab = both
    case = CASES[name]
    code, expected = real(plane, case)
    reply = lab.call(case.method, case.path, case.body, content_type=case.content_type)

    assert expected["kind"] == reply.body["kind"] == "Status"
    if case.differs:
        if code != 500:
            assert (reply.status, reply.body["reason"]) == (code, expected["reason"])
        return
    assert (reply.status, reply.body.get("reason")) == (code, expected.get("reason"))
    assert reply.body["message"] == expected["message"]
    assert reply.body.get("details", {}).get("kind") == expected.get("details", {}).get("kind")


VOLUMES_OF_ALL_KINDS = [
    {"name": "empty"},
    {"name": "config", "configMap": {"name": "x"}},
    {"name": "host", "hostPath": {"path": "/x"}},
    {"name": "secret", "secret": {"secretName": "x"}},
    {
        "name": "about",
        "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]},
    },
]
RICH = {
    "containers": container(
        resources={"limits": {"cpu": 0.5, "memory": "1024Mi"}},
        ports=[{"containerPort": 80}],
        livenessProbe={"httpGet": {"port": 80}},
        env=[{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        volumeMounts=[{"name": "empty", "mountPath": "/v"}],
    ),
    "initContainers": [{"name": "i", "image": "c:2"}],
    "volumes": VOLUMES_OF_ALL_KINDS,
}
MADE = {"metadata": {"labels": {"a": "b"}}, "spec": RICH}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NEW: dict[str, tuple[str, Any]] = {
    "pod": (PODS, pod("alike")),
    "rich pod": (PODS, pod("rich", **RICH)),
    "pod on the host's network": (
        PODS,
        pod("host", hostNetwork=True, containers=container(ports=[{"containerPort": 80}])),
    ),
    "deployment": (DEPLOYMENTS, workload("alike", template=MADE)),
    "replica set": (APPS + "replicasets", workload("alike", "ReplicaSet", template=MADE)),
    "daemon set": (APPS + "daemonsets", workload("alike", "DaemonSet", template=MADE)),
    "stateful set": (
        APPS + "statefulsets",
        workload(
            "alike",
            "StatefulSet",
            template=MADE,
            serviceName="x",
            volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": CLAIM}],
        ),
    ),
    "replication controller": (
        "/api/v1/namespaces/default/replicationcontrollers",
        {"metadata": {"name": "alike"}, "spec": {"template": MADE}},
    ),
    "service": (SERVICES, service("alike", selector={"a": "b"})),
    "headless service": (SERVICES, service("headless", clusterIP="None")),
    "budget": (BUDGETS, {"metadata": {"name": "alike"}, "spec": {"minAvailable": 1}}),
    "storage class": (STORAGE, {"metadata": {"name": "alike"}, "provisioner": "a.b/c"}),
    "priority class": (CLASSES, {"metadata": {"name": "alike"}, "value": 5}),
    "secret": (
        "/api/v1/namespaces/default/secrets",
        {"metadata": {"name": "alike"}, "stringData": {"a": "b"}},
    ),
}
#: What is the server's to choose; what later releases add; and the finalizers of a controller that
#: neither has. Priority admission is off in the control plane of these tests.
HIDDEN = {
    "uid", "resourceVersion", "creationTimestamp", "managedFields", "clusterIP", "clusterIPs",
    "persistentVolumeClaimRetentionPolicy", "maxSurge", "internalTrafficPolicy", "ipFamilies",
    "ipFamilyPolicy", "priority", "preemptionPolicy",
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_a_new_object_looks_alike(both: Any, name: str) -> None:
    plane, lab = both
    path, body = NEW[name]

    assert _shown(lab.post(path, body)) == _shown(plane.post(path, body))


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _shown(each) for key, each in value.items() if key not in HIDDEN}
