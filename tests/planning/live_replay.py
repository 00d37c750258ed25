"""A plan carried out on a real API server, where no controllers run.

The steps of the plan's timeline are made there in their order: pods that the plan created are
created, pods that went are deleted. Nodes are chosen by the scheduler that runs beside the API
server, and by nothing else.

In a plan requests take no time: at one instant all controllers act, then the scheduler decides. So
the scheduler is held while the steps of one instant are made: it waits for an extender's answer
about a pod that only the extender knows, and goes on reading its watches.
"""

from __future__ import annotations

import copy
import json
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, groupby
from typing import Any, Final

from control_plane.harness import PODS, ControlPlane, until
from podium.simulation.cluster import SimulatedCluster
from podium.simulation.history import History

Item = dict[str, Any]

#: The collections of the kinds that a snapshot may hold, owners before what they own.
COLLECTIONS: Final = {
    "Node": "/api/v1/nodes",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/default/daemonsets",
    "PodDisruptionBudget": "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    "Pod": PODS,
}
_GIVEN_BY_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation")
_MARKERS: Final = count()
#: How long the API server may take to write an event to a watch.
DELIVERY_SECONDS: Final = 0.3
#: Longer than the backoff of `SETTINGS`: in a plan, time goes by between two instants.
BACKOFF_SECONDS: Final = 1.2
#: What plan and scheduler have in common.
SETTINGS: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 1,
}
GATE: Final = "example.com/gate"


class Gate:
    """An extender for pods that ask for `GATE`: it refuses every node, at once or when opened."""

    def __init__(self) -> None:
        self._open, self._reached = threading.Event(), threading.Event()
        self._open.set()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                gate._reached.set()
                gate._open.wait(60)
                failed = dict.fromkeys(asked["NodeNames"], "held")
                body = json.dumps({"NodeNames": [], "FailedNodes": failed})
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                """Write no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """End the extender."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def closed(self) -> Iterator[threading.Event]:
        """Answer nothing meanwhile; what is given is set once the scheduler waits for an answer."""
        self._reached.clear()
        self._open.clear()
        try:
            yield self._reached
        finally:
            self._open.set()

    @property
    def settings(self) -> Item:
        """The configuration of a scheduler that asks this extender."""
        asked = {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_port}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "60s",
            "managedResources": [{"name": GATE, "ignoredByScheduler": True}],
        }
        return {**SETTINGS, "extenders": [asked]}


def gated_pod(name: str) -> Item:
    """A pod that the gate is asked about."""
    wanted = {"requests": {GATE: "1"}, "limits": {GATE: "1"}}
    container = {"name": "main", "image": "app:1", "resources": wanted}
    everywhere = [{"operator": "Exists"}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "tolerations": everywhere},
    }


class RecordedCluster(SimulatedCluster):
    """A simulated cluster that keeps the pods and replica sets that are created in it."""

    last: History

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        RecordedCluster.last = self.record("Pod", "ReplicaSet")


def created_objects() -> dict[tuple[str, str], list[Item]]:
    """What was created in the last recorded cluster after its objects were loaded, by kind and key.

    A pod of a stateful set may have been created several times under its name.
    """
    found: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for write in RecordedCluster.last:
        if write.type == "ADDED" and write.time > 0:
            found[write.kind, write.key].append(write.object)
    return found


class Replay:
    """Loads a snapshot into an API server and makes the steps of a plan there."""

    def __init__(self, plane: ControlPlane, gate: Gate, metrics_url: str) -> None:
        self._plane, self._gate, self._metrics_url = plane, gate, metrics_url
        #: The uids that the API server gave, by those of the snapshot and of the plan.
        self._uids: dict[str, str] = {}

    def load(self, items: list[Item]) -> None:
        """Create the objects of a snapshot; pods keep their nodes."""
        for kind in COLLECTIONS:
            for item in items:
                if item["kind"] == kind:
                    self._create(item)

    def _create(self, item: Item) -> None:
        item = copy.deepcopy(item)
        about = item["metadata"]
        uid = about["uid"]
        for field in _GIVEN_BY_SERVER:
            about.pop(field, None)
        about.pop("managedFields", None)
        for owner in about.get("ownerReferences") or ():
            owner["uid"] = self._uids[owner["uid"]]
        if item["kind"] == "PodDisruptionBudget":
            item["apiVersion"] = "policy/v1beta1"
        made = self._plane.post(COLLECTIONS[item["kind"]], item)
        self._uids[uid] = made["metadata"]["uid"]

    def nodes(self) -> dict[str, str]:
        """The node of every pod, empty for a pod without one."""
        return {
            f"default/{pod['metadata']['name']}": pod["spec"].get("nodeName", "")
            for pod in self._pods()
            if "deletionTimestamp" not in pod["metadata"]
        }

    def _node_of(self, key: str) -> str:
        return self.nodes()[key]

    def _pods(self) -> list[Item]:
        found: list[Item] = self._plane.get(PODS)["items"]
        return found

    def make(self, change: tuple[str, ...], timeline: list[Item]) -> None:
        """Make the *change* with kubectl, and everything that controllers did after it.

        Steps are made once every pod before them was decided about. A pod that was bound to another
        node than in the plan ends the replay.
        """
        created = created_objects()
        for (_, is_decision), group in groupby(timeline, key=_instant):
            events = list(group)
            if is_decision:
                for event in events:
                    self._compare(event)
                continue
            self.wait_until_tried()
            if events[0]["what"] == "change":
                self._change(change)
                del events[0]
            time.sleep(BACKOFF_SECONDS)
            with self._held_scheduler():
                for event in events:
                    self._take_step(event, created)
            self.wait_until_tried()

    @contextmanager
    def _held_scheduler(self) -> Iterator[None]:
        """Hold the scheduler until it has seen all that is written meanwhile."""
        name = f"marker-{next(_MARKERS)}"
        with self._gate.closed() as reached:
            self._plane.post(PODS, gated_pod(name))
            assert reached.wait(60), "the scheduler does not ask its extender"
            yield
            time.sleep(DELIVERY_SECONDS)
        self.wait_until_tried()
        self._plane.delete_pod(name)

    def _compare(self, event: Item) -> None:
        """Wait until a pod has a node, and compare it with that of the plan."""
        key = event["object"]
        where = until(f"{key} is bound", partial(self._node_of, key))
        planned = event["text"].removeprefix(f"pod {key} is bound to ")
        assert where == planned, f"{key}: the plan has {planned}, the cluster {where}"

    def _take_step(self, event: Item, created: dict[tuple[str, str], list[Item]]) -> None:
        """Do what a controller or a kubelet did in the plan."""
        key = event["object"]
        path = f"{PODS}/{key.removeprefix('default/')}"
        match event["what"]:
            case "created":
                self._create_pod(created["Pod", key].pop(0), created)
            case "terminating":
                self._plane.call("DELETE", path)
            case "gone":
                self._plane.call("DELETE", path, {"gracePeriodSeconds": 0})
            case "running":
                pass
            case other:
                raise AssertionError(f"the replay has no step for {other}: {event['text']}")

    def _change(self, change: tuple[str, ...]) -> None:
        """Make a change; a change of nodes is waited for, because pods come on another watch."""
        verb, *_ = change
        self._plane.kubectl(*change)
        if verb == "cordon":
            self._wait_for_message("1 node(s) were unschedulable")
        elif verb == "delete":
            left = len(self._plane.get(COLLECTIONS["Node"])["items"])
            self._wait_for_message(f"0/{left} nodes are available")

    def _wait_for_message(self, part: str) -> None:
        """Wait until the scheduler says this about a pod that fits nowhere."""

        def said() -> bool:
            name = f"marker-{next(_MARKERS)}"
            self._plane.add_pod(name, "default-scheduler", cpu="1000")
            self.wait_until_tried()
            pod = self._plane.get(f"{PODS}/{name}")
            self._plane.delete_pod(name)
            return any(part in each["message"] for each in pod["status"]["conditions"])

        until(f"a pod is told: {part}", said)

    def _create_pod(self, pod: Item, created: dict[tuple[str, str], list[Item]]) -> None:
        """Create a pod of the plan without its node, after the replica set that owns it."""
        owner = pod["metadata"]["ownerReferences"][0]
        if owner["uid"] not in self._uids:
            (replica_set,) = created["ReplicaSet", f"default/{owner['name']}"]
            above = replica_set["metadata"]["ownerReferences"][0]
            self._uids.setdefault(above["uid"], self._uid_of(above))
            self._create({**replica_set, "kind": "ReplicaSet"})
        assert "nodeName" not in pod["spec"]
        self._create({**pod, "kind": "Pod"})

    def _uid_of(self, owner: Item) -> str:
        """The uid of an object that kubectl has created here and the plan in its own cluster."""
        found = self._plane.get(f"{COLLECTIONS[owner['kind']]}/{owner['name']}")
        return str(found["metadata"]["uid"])

    def wait_until_tried(self) -> None:
        """Wait until every pod has a node, or was told that there is none."""

        def tried() -> bool:
            return all(
                pod["spec"].get("nodeName") or pod["status"].get("conditions")
                for pod in self._pods()
            )

        until("all pods tried", tried)

    def wait_until_idle(self) -> None:
        """Wait until the scheduler has seen all pods and has none to attempt again."""
        self._wait_for_message("nodes are available")

        def idle() -> bool:
            with urllib.request.urlopen(self._metrics_url, timeout=10) as response:
                lines = response.read().decode().splitlines()
            waiting = [
                float(line.rsplit(" ", 1)[1])
                for line in lines
                if line.startswith("scheduler_pending_pods{")
                and ('"active"' in line or '"backoff"' in line)
            ]
            assert len(waiting) == 2, lines
            return not any(waiting)

        until("no pod is attempted again", idle)


def _instant(event: Item) -> tuple[float, bool]:
    """When an event is, and whether it is a decision of the scheduler."""
    return event["at"], event["what"] == "bound"
