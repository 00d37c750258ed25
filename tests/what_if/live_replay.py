"""A plan carried out on a real API server, where no controllers run.

What the scheduler of the plan saw is made there in the same order: pods that were created are
created, pods that went are deleted. Nodes are chosen by the scheduler that runs beside the API
server, and by nothing else.

In a plan requests take no time: at one instant controllers act and the scheduler decides, in turns.
So the other scheduler is held until all that was seen before a decision was delivered to it: it
waits for an extender's answer about a pod that only the extender knows, and goes on reading its
watches. A pod is created just before it is decided about, so that it is not decided about earlier.
"""

from __future__ import annotations

import copy
import json
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Final, NamedTuple

from control_plane.harness import PODS, ControlPlane
from podium.objects.kinds.pod import Pod
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.virtual_cluster.cluster import Replica, SimulatedCluster
from waiting import until

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


class Step(NamedTuple):
    """Something that the scheduler of a plan saw, or decided."""

    at: float
    #: `created`, `terminating`, `gone` or `decided`.
    what: str
    pod: str
    #: The node that was decided on; empty for none.
    node: str = ""


class StepRecorder(Observer):
    """Notes the steps of a scheduler."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self.steps: list[Step] = []

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that came, is being deleted, or went."""
        if new is None:
            assert old is not None
            self._add("gone", old)
        elif old is None and not new.spec.node_name:
            self._add("created", new)
        elif new.terminating and (old is None or not old.terminating):
            self._add("terminating", new)

    def attempted(self, result: AttemptResult) -> None:
        """Note a decision."""
        self._add("decided", result.pod, result.decision.node or "")

    def _add(self, what: str, pod: Pod, node: str = "") -> None:
        self.steps.append(Step(self._time(), what, pod.key, node))


class RecordedCluster(SimulatedCluster):
    """A simulated cluster that keeps what is created in it, and what its scheduler sees."""

    last: RecordedCluster

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.created = self.record("Pod", "ReplicaSet")
        self._recorder = StepRecorder(lambda: self.time)
        RecordedCluster.last = self

    def add_scheduler(self, *args: Any, **options: Any) -> Replica:
        """Start a scheduler that is recorded."""
        options["observers"] = (*options.get("observers", ()), self._recorder)
        return super().add_scheduler(*args, **options)

    def steps_since(self, event: Item) -> list[Step]:
        """What the scheduler saw and decided from an event of a plan's timeline on."""
        steps = self._recorder.steps
        found = (n for n, step in enumerate(steps) if _says(step, event))
        return steps[next(found) :]


def _says(step: Step, event: Item) -> bool:
    return (step.what, step.pod) == (event["what"], event["object"])


def created_objects() -> dict[tuple[str, str], list[Item]]:
    """What was created in the last recorded cluster after its objects were loaded, by kind and key.

    A pod of a stateful set may have been created several times under its name.
    """
    found: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for write in RecordedCluster.last.created:
        if write.type == "ADDED" and write.time > 0:
            found[write.kind, write.key].append(write.object)
    return found


class Replay:
    """Loads a snapshot into an API server and makes the steps of a plan there."""

    def __init__(self, plane: ControlPlane, gate: Gate, metrics_url: str) -> None:
        self._plane, self._gate, self._metrics_url = plane, gate, metrics_url
        #: The uids that the API server gave, by those of the snapshot and of the plan.
        self._uids: dict[str, str] = {}
        #: What the plan created and is still to be created here; virtual time so far.
        self._objects: dict[tuple[str, str], list[Item]] = {}
        self._time = 0.0

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

    def make(self, change: tuple[str, ...], steps: list[Step]) -> None:
        """Make the *change* with kubectl, and everything that controllers did after it.

        A pod that was bound to another node than in the plan ends the replay.
        """
        self._objects = created_objects()
        self.wait_until_tried()
        self._change(change)
        group: list[Step] = []
        waiting: dict[str, Step] = {}
        for step in steps:
            if step.what == "created":
                waiting[step.pod] = step
                continue
            if step.pod in waiting:
                group.append(waiting.pop(step.pod))
            if step.what != "decided":
                group.append(step)
                continue
            self._take(group)
            group = []
            if step.node:
                self._compare(step)
        self._take([*group, *waiting.values()])

    def _take(self, group: list[Step]) -> None:
        """Take the steps between two decisions, which the scheduler sees at once."""
        if not group:
            return
        self.wait_until_tried()
        if group[-1].at > self._time:
            self._time = group[-1].at
            time.sleep(BACKOFF_SECONDS)
        with self._held_scheduler():
            for step in group:
                path = f"{PODS}/{step.pod.removeprefix('default/')}"
                if step.what == "created":
                    self._create_pod(self._objects["Pod", step.pod].pop(0))
                elif step.what == "terminating":
                    self._plane.call("DELETE", path)
                else:
                    self._plane.call("DELETE", path, {"gracePeriodSeconds": 0})
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

    def _compare(self, step: Step) -> None:
        """Wait until a pod has a node, and compare it with that of the plan."""
        where = until(f"{step.pod} is bound", partial(self._node_of, step.pod))
        assert where == step.node, f"{step.pod}: the plan has {step.node}, the cluster {where}"

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

    def _create_pod(self, pod: Item) -> None:
        """Create a pod of the plan without its node, after the replica set that owns it."""
        owner = pod["metadata"]["ownerReferences"][0]
        if owner["uid"] not in self._uids:
            (replica_set,) = self._objects["ReplicaSet", f"default/{owner['name']}"]
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
            with urllib.request.urlopen(self._metrics_url, timeout=60) as response:
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
