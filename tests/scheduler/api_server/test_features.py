"""Longer lives and other company: volumes, extenders, several profiles, shadows, memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from control_plane.bulk import create_many, nodes, pods, revision
from control_plane.checker import assert_sound
from control_plane.harness import PODS, ControlPlane
from scheduler.api_server.conftest import Podium
from waiting import until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED = "volume.kubernetes.io/selected-node"


# Volumes --------------------------------------------------------------------------------------


@pytest.fixture
def storage(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Storage classes whose claims wait for a pod, and room to clear up after."""
    for name, provisioner in (("static", "kubernetes.io/no-provisioner"), ("made", "example.com")):
        plane.post(
            CLASSES,
            {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
    yield plane
    for path in (CLAIMS, VOLUMES):
        for item in plane.get(path)["items"]:
            where = f"{path}/{item['metadata']['name']}"
            # Nobody is here to take off what protects them from deletion.
            plane.call("PATCH", where, {"metadata": {"finalizers": None}}, "merge-patch+json")
        plane.call("DELETE", path)
    plane.call("DELETE", CLASSES)


def a_claim(name: str, storage_class: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def a_volume(name: str, node: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression(node)]}]
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "static",
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def expression(node: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}


def using(claim: str) -> list[dict[str, Any]]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


def bind_claim(plane: ControlPlane, claim: str, volume: str) -> None:
    """What the volume controller does at last."""
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    patch = {"metadata": done, "spec": {"volumeName": volume}}
    plane.call("PATCH", f"{CLAIMS}/{claim}", patch, "merge-patch+json")


@pytest.mark.parametrize("profile", ["v1.13", "v1.37"])
def test_a_volume_is_given_to_the_claim_before_the_pod_is_bound(
    storage: ControlPlane, podium: Podium, profile: str
) -> None:
    plane = storage
    for name in ("n1", "n2"):
        plane.add_node(name, {})
    plane.post(VOLUMES, a_volume("disk", "n2"))
    plane.call(
        "PATCH", f"{VOLUMES}/disk/status", {"status": {"phase": "Available"}}, "merge-patch+json"
    )
    plane.post(CLAIMS, a_claim("data", "static"))
    plane.add_pod("user", "podium", volumes=using("data"))
    plane.add_pod("bystander", "podium")

    with podium("--profile", profile):
        until("the volume is given", lambda: claimed(plane, "disk"))
        until("others do not wait", lambda: plane.node_of("bystander"))
        assert plane.node_of("user") == ""
        bind_claim(plane, "data", "disk")
        until("the pod is bound", lambda: plane.node_of("user"))

    reference = claimed(plane, "disk")
    assert (reference["namespace"], reference["name"]) == ("default", "data")
    assert reference["uid"] == plane.get(f"{CLAIMS}/data")["metadata"]["uid"]
    annotations = plane.get(f"{VOLUMES}/disk")["metadata"]["annotations"]
    assert annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert plane.node_of("user") == "n2"


def claimed(plane: ControlPlane, volume: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.get(f"{VOLUMES}/{volume}")["spec"].get("claimRef", {})
    return found


def test_a_volume_is_made_where_the_pod_will_be(storage: ControlPlane, podium: Podium) -> None:
    plane = storage
    plane.add_node("n1", {})
    plane.post(CLAIMS, a_claim("fresh", "made"))
    plane.add_pod("user", "podium", volumes=using("fresh"))

    with podium():
        until("a node is chosen", lambda: selected(plane, "fresh"))
        chosen = selected(plane, "fresh")
        # The provisioner gives up: the scheduler has to try again.
        withdrawn = {"metadata": {"annotations": {SELECTED: None}}}
        plane.call("PATCH", f"{CLAIMS}/fresh", withdrawn, "merge-patch+json")
        until("it says so", lambda: plane.events_of("user"))
        until("a node is chosen again", lambda: selected(plane, "fresh"))
        plane.post(VOLUMES, a_volume("made-for-it", "n1"))
        bind_claim(plane, "fresh", "made-for-it")
        until("the pod is bound", lambda: plane.node_of("user"))
        told = plane.events_of("user")[0]

    assert chosen == "n1"
    what = "binding volumes: selectedNode annotation reset for PVC"
    wanted = f'running PreBind plugin "VolumeBinding": {what}'
    assert told == f'FailedScheduling: {wanted} "fresh"'


def selected(plane: ControlPlane, claim: str) -> str:
    annotations = plane.get(f"{CLAIMS}/{claim}")["metadata"].get("annotations") or {}
    return str(annotations.get(SELECTED, ""))


# Extenders ------------------------------------------------------------------------------------


@contextmanager
def extender(plane: ControlPlane) -> Iterator[tuple[str, list[str]]]:
    """An extender that likes no node but n2, and binds pods; where it is, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = {
                name.lower(): value for name, value in json.loads(self.rfile.read(length)).items()
            }
            asked.append(self.path)
            if self.path == "/bind":
                reply = self.bind(body)
            else:
                names = [name for name in body["nodenames"] if name == "n2"]
                reply = {"NodeNames": names, "FailedNodes": {}, "Error": ""}
            text = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def bind(self, body: dict[str, Any]) -> dict[str, Any]:
            about = {"name": body["podname"], "uid": body["poduid"]}
            target = {"kind": "Node", "name": body["node"]}
            path = f"{PODS}/{body['podname']}/binding"
            plane.post(path, {"metadata": about, "target": target})
            return {"error": ""}

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_extenders_are_asked_and_bind(plane: ControlPlane, podium: Podium, tmp_path: Path) -> None:
    since = revision(plane)
    for name in ("n1", "n2", "n3"):
        plane.add_node(name, {})
    with extender(plane) as (url, asked):
        policy = {
            "kind": "Policy",
            "apiVersion": "v1",
            "extenders": [
                {
                    "urlPrefix": url,
                    "filterVerb": "filter",
                    "bindVerb": "bind",
                    "nodeCacheCapable": True,
                }
            ],
        }
        path = tmp_path / "policy.json"
        path.write_text(json.dumps(policy), "utf-8")
        with podium("--policy-config-file", path):
            for number in range(5):
                plane.add_pod(f"p{number}", "podium")
            until("all are bound", lambda: all(plane.node_of(f"p{i}") for i in range(5)))

    found = assert_sound(plane, since)
    assert {found.node_of(f"p{i}") for i in range(5)} == {"n2"}
    assert set(asked) == {"/filter", "/bind"}


# Configuration --------------------------------------------------------------------------------


def test_several_profiles_by_the_names_of_schedulers(
    plane: ControlPlane, podium: Podium, tmp_path: Path
) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {"schedulerName": "spreads"},
            {
                "schedulerName": "packs",
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {"scoringStrategy": {"type": "MostAllocated"}},
                    }
                ],
            },
        ],
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), "utf-8")
    for number in range(4):
        plane.add_node(f"n{number}", {}, cpu="4")
    with podium("--config", path):
        for scheduler in ("packs", "spreads"):
            for number in range(4):
                plane.add_pod(f"{scheduler}-{number}", scheduler, cpu="500m")
                until("it is bound", partial(plane.node_of, f"{scheduler}-{number}"))
        until("it is told", lambda: plane.events_of("packs-0"))
        query = "fieldSelector=involvedObject.name%3Dpacks-0"
        [event] = plane.get(f"/api/v1/namespaces/default/events?{query}")["items"]

    assert len({plane.node_of(f"packs-{i}") for i in range(4)}) == 1
    assert len({plane.node_of(f"spreads-{i}") for i in range(4)}) > 1
    assert event["reportingComponent"] == "packs"


def test_a_policy_from_a_configmap(plane: ControlPlane, podium: Podium) -> None:
    predicate = {
        "name": "CheckNodeLabelPresence",
        "argument": {"labelsPresence": {"labels": ["ssd"], "presence": True}},
    }
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": [predicate], "priorities": []}
    plane.post(
        "/api/v1/namespaces/kube-system/configmaps",
        {"metadata": {"name": "rules"}, "data": {"policy.cfg": json.dumps(policy)}},
    )
    plane.add_node("n1", {})
    plane.add_node("n2", {"ssd": "yes"})
    with podium("--policy-configmap", "rules") as program:
        plane.add_pod("p", "podium")
        until("it is bound", lambda: plane.node_of("p"))
        introduced = program.log.read_text("utf-8").splitlines()[0]

    assert plane.node_of("p") == "n2"
    assert introduced == (
        f"podium schedules pods of podium at {plane.url} "
        "by v1.13 policy ConfigMap kube-system/rules"
    )


# Memory ---------------------------------------------------------------------------------------


def live_and_die(plane: ControlPlane, podium: Podium, waves: int, size: int) -> list[float]:
    """Pods come, are bound, and go, each unlike all others; memory after each wave, in MiB."""
    create_many(plane, "/api/v1/nodes", nodes(50, cpu="64"))
    sizes = []
    with podium() as program:
        for wave in range(waves):
            create_many(plane, PODS, (unlike_others(wave * size + i) for i in range(size)))
            until("all are bound", lambda: is_bound(plane, size), seconds=120, pause=0.5)
            plane.call("DELETE", f"{PODS}?gracePeriodSeconds=0", seconds=120)
            until("all are gone", lambda: not plane.get(PODS)["items"], seconds=60)
            # Nobody else does before an hour is over.
            plane.call("DELETE", "/api/v1/namespaces/default/events", seconds=120)
            sizes.append(resident_mib(program.pid))
    return sizes


def is_bound(plane: ControlPlane, count: int) -> bool:
    items = plane.get(f"{PODS}?fieldSelector=spec.nodeName!%3D")["items"]
    return len(items) == count


def unlike_others(number: int) -> dict[str, Any]:
    made = next(pods(1, cpu="10m", memory="10Mi"))
    labels = {"number": str(number)}
    made["metadata"] = {"name": f"pod-{number:06d}", "labels": labels}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    made["spec"]["affinity"] = {"podAntiAffinity": anti}
    return made


def resident_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def test_memory_is_steady_over_five_thousand_pods(plane: ControlPlane, podium: Podium) -> None:
    sizes = live_and_die(plane, podium, 10, 500)

    # Decisions are logged up to a budget, which fills at first.
    assert sizes[-1] - sizes[4] < 25, sizes
    assert sizes[-1] < 300


@pytest.mark.soak
def test_memory_is_steady_over_fifty_thousand_pods(
    plane: ControlPlane, podium: Podium, record_property: Callable[[str, object], None]
) -> None:
    sizes = live_and_die(plane, podium, 50, 1000)

    for wave in (1, 26, 50):
        record_property(f"MiB after {wave},000 pods", round(sizes[wave - 1]))
    assert sizes[-1] - sizes[25] < 25, sizes
    assert sizes[-1] < 300
