"""The fake kubelet of all nodes: reports bound pods as created, running, finished and deleted.

No container runs. A bound pod is reported as being created and then as running. Pods of jobs, and
pods with an annotation or a deadline, finish after a while. A deleted pod is removed after its stop
time, and after the sleep of its preStop hooks. Pods on a node that is unreachable are left alone.

The status that a kubelet writes is made by pure functions of a pod.

Upstream: pkg/kubelet/status and pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from podium.lab.api.encoding import parse_time
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import Key, annotation, condition
from podium.lab.controllers.framework.pods import EXIT_CODE, RUN_SECONDS, LabPods, PodInfo
from podium.objects.kinds.meta import JsonObject

#: The prefix of container IDs of the fake kubelet; other containers come from real clusters.
RUNTIME: Final = "lab://"
_CONDITION_ORDER: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
#: While more pods than this are starting, the status ContainerCreating is not written.
_MANY_STARTING: Final = 20
_POD_CIDR: Final = 10 << 24 | 64 << 16  # 10.64.0.0/10
_POD_CIDR_SIZE: Final = 1 << 22
_KILLED: Final = 137
_DEADLINE: Final = "DeadlineExceeded"
_GRACE: Final = "deletionGracePeriodSeconds"


def creating_status(pod: JsonObject, host: str, at: str) -> JsonObject:
    """The status of a pod whose containers are being created."""
    names = [each["name"] for each in pod["spec"].get("containers") or ()]
    unready = {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(names)}]",
    }
    conditions = {
        "PodReadyToStartContainers": ("False", {}),
        "Initialized": ("True", {}),
        "Ready": ("False", unready),
        "ContainersReady": ("False", unready),
    }
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return {
        **(pod.get("status") or {}),
        "phase": "Pending",
        "conditions": _conditions(pod, conditions, at),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": at,
        "containerStatuses": [
            {**_container(each), "ready": False, "started": False, "state": waiting}
            for each in pod["spec"].get("containers") or ()
        ],
    }


def running_status(pod: JsonObject, host: str, address: str, at: str) -> JsonObject:
    """The status of a pod with all containers running and ready."""
    before = pod.get("status") or {}
    uid = pod["metadata"].get("uid", "")
    every = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    found: JsonObject = {
        **{name: value for name, value in before.items() if name not in {"reason", "message"}},
        "phase": "Running",
        "conditions": _conditions(pod, dict.fromkeys(every, ("True", {})), at),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": before.get("startTime") or at,
        "containerStatuses": [
            _running(each, uid, at) for each in pod["spec"].get("containers") or ()
        ],
    }
    first = pod["spec"].get("initContainers")
    if first:
        found["initContainerStatuses"] = [
            _running(each, uid, at)
            if each.get("restartPolicy") == "Always"
            else _terminated(each, uid, at, at, initial=True)
            for each in first
        ]
    return found


def with_readiness(pod: JsonObject, *, ready: bool, at: str) -> JsonObject:
    """The status of a running pod with another Ready condition."""
    changes: dict[str, tuple[str, JsonObject]] = {"Ready": ("True" if ready else "False", {})}
    return {**pod["status"], "conditions": _conditions(pod, changes, at)}


def finished_status(
    pod: JsonObject, at: str, *, exit_code: int = 0, reason: str = ""
) -> JsonObject:
    """The status of a pod whose containers terminated: Succeeded, or Failed with an exit code."""
    before = pod.get("status") or {}
    uid, since = pod["metadata"].get("uid", ""), before.get("startTime") or at
    why = {"reason": "PodCompleted"} if not exit_code else {"reason": "PodFailed"}
    conditions = {
        "PodReadyToStartContainers": ("False", {}),
        "Initialized": ("True", {"reason": "PodCompleted"} if not exit_code else {}),
        "Ready": ("False", why),
        "ContainersReady": ("False", why),
    }
    found = {
        **before,
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": _conditions(pod, conditions, at),
        "containerStatuses": [
            _terminated(each, uid, since, at, exit_code=exit_code)
            for each in pod["spec"].get("containers") or ()
        ],
    }
    return found | {"reason": reason} if reason else found


def started_here(pod: JsonObject) -> bool:
    """Whether the fake kubelet started the containers."""
    statuses: Iterable[Any] = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(str(each.get("containerID", "")).startswith(RUNTIME) for each in statuses)


def _conditions(
    pod: JsonObject, changes: dict[str, tuple[str, JsonObject]], at: str
) -> list[JsonObject]:
    """The conditions of a pod with *changes*; an unchanged status keeps its transition time."""
    present = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    for kind, (value, more) in changes.items():
        before = condition(pod, kind)
        same = before.get("status") == value
        since = before.get("lastTransitionTime") if same else None
        present[kind] = {
            "type": kind,
            "status": value,
            "lastProbeTime": None,
            "lastTransitionTime": since or at,
            **more,
        }
    known = [present.pop(kind) for kind in _CONDITION_ORDER if kind in present]
    return [*present.values(), *known]


def _container(container: JsonObject) -> JsonObject:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "lastState": {},
        "restartCount": 0,
    }


def _identity(container: JsonObject, uid: str) -> JsonObject:
    digest = hashlib.sha256(f"{uid}/{container['name']}".encode()).hexdigest()
    return {"imageID": container.get("image", ""), "containerID": f"{RUNTIME}{digest}"}


def _running(container: JsonObject, uid: str, at: str) -> JsonObject:
    return {
        **_container(container),
        **_identity(container, uid),
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": at}},
    }


def _terminated(
    container: JsonObject,
    uid: str,
    since: str,
    at: str,
    *,
    exit_code: int = 0,
    initial: bool = False,
) -> JsonObject:
    identity = _identity(container, uid)
    state = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": since,
        "finishedAt": at,
        "containerID": identity["containerID"],
    }
    return {
        **_container(container),
        **identity,
        "ready": initial,
        "started": False,
        "state": {"terminated": state},
    }


@dataclass(frozen=True, slots=True)
class KubeletTimings:
    """The seconds that a pod takes to start and to stop, and that pods of jobs run."""

    start: float = 0.15
    #: None: a deleted pod stops at the end of its grace period.
    stop: float | None = 0.5
    #: None: pods of jobs run until something ends them.
    job: float | None = 3.0


@dataclass(frozen=True, slots=True)
class _End:
    """How a running pod ends; the seconds count from its start."""

    seconds: float
    exit_code: int
    reason: str = ""


class FakeKubelet(Controller[Key]):
    """Writes the status of bound pods. Its keys are those of pods."""

    name: ClassVar = "kubelet"

    def __init__(self, cluster: Cluster, timings: KubeletTimings) -> None:
        """Watch nodes and pods; pods start and stop after the seconds in *timings*."""
        super().__init__(cluster)
        self.timings = timings
        self._last_ip = 0
        #: When pods were first seen starting or stopping, by uid.
        self._starting: dict[str, float] = {}
        self._stopping: dict[str, float] = {}
        self._removed: set[str] = set()
        self.watch("Node", self._on_node)
        self.watch_pods(self._on_pod, listed=self._on_listed_pods)

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None or (old is not None and _readiness(old) == _readiness(new)):
            return
        for key in self.cluster.pods.on_node(new["metadata"]["name"]):
            self.enqueue(key)

    def _on_listed_pods(self, pods: LabPods) -> None:
        """Continue after the IPs in use, and look at the pods that do not run as they should."""
        nodes = self.cluster.list("Node")
        ready = {node["metadata"]["name"] for node in nodes if _readiness(node) == "True"}
        for pod in pods.all.values():
            if pod.node:
                if pod.ip:
                    self._reserve_ip(pod.ip)
                if pod.node not in ready or not _is_settled(pod):
                    self.enqueue(pod.key)

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is None:
            assert old is not None
            self._starting.pop(old.uid, None)
            self._stopping.pop(old.uid, None)
            self._removed.discard(old.uid)
            return
        if not new.node:
            return
        if old is None or not old.node:
            self._reserve_ip(new.ip)
        elif old.deletion == new.deletion and old.phase == new.phase:
            return
        self.enqueue(new.key)

    def sync(self, key: Key) -> None:
        """Report the next step in the life of a bound pod, or check again when it is due."""
        pod = self.cluster.pods.all.get(key)
        if pod is None or not pod.node:
            return
        node = self.cluster.get("Node", "", pod.node)
        if node is None or _readiness(node) == "Unknown":
            if pod.ready and not pod.terminating:
                self._set_ready(key, ready=False)
            return
        if pod.terminating:
            self._stop(pod)
        elif pod.phase == "Pending":
            self._start(pod, node)
        elif pod.phase == "Running":
            self._follow_node_readiness(pod, node)
            self._end_when_due(pod)

    def _start(self, pod: PodInfo, node: JsonObject) -> None:
        now = self.cluster.now()
        host = _node_ip(node)
        first = self._starting.get(pod.uid)
        if first is None:
            many = len(self._starting) > _MANY_STARTING
            self._starting[pod.uid] = now
            if self.timings.start > 0:
                self.enqueue(pod.key, after=self.timings.start)
                if not many:
                    self._update_status(pod.key, lambda it, at: creating_status(it, host, at))
                return
        elif now < first + self.timings.start:
            self.enqueue(pod.key, after=first + self.timings.start - now)
            return
        self._starting.pop(pod.uid, None)
        pod_ip = self._allocate_ip()

        def running(found: JsonObject, at: str) -> JsonObject:
            ip = host if found["spec"].get("hostNetwork") else pod_ip
            return running_status(found, host, ip, at)

        self._update_status(pod.key, running)
        if self.cluster.events.has_budget():
            self._record_start(pod.key)

    def _follow_node_readiness(self, pod: PodInfo, node: JsonObject) -> None:
        ready = _readiness(node) != "False"
        if ready != pod.ready:
            whole = self.cluster.get("Pod", *pod.key)
            if whole is not None and started_here(whole):
                self._set_ready(pod.key, ready=ready)

    def _end_when_due(self, pod: PodInfo) -> None:
        if not pod.has_end and (pod.owner is None or pod.owner[0] != "Job"):
            return
        found = self.cluster.get("Pod", *pod.key)
        if found is None or not started_here(found):
            return
        end = self._end_of(found)
        if end is None:
            return
        now = self.cluster.now()
        due = (parse_time(found["status"].get("startTime")) or now) + end.seconds
        if now < due:
            is_deadline = end.reason == _DEADLINE
            self.enqueue(pod.key, after=due - now, clock=is_deadline)
            return
        self._update_status(
            pod.key,
            lambda it, at: finished_status(it, at, exit_code=end.exit_code, reason=end.reason),
        )

    def _end_of(self, pod: JsonObject) -> _End | None:
        """The end that comes first: by annotation, as a pod of a job, or by deadline."""
        seconds = _number(annotation(pod, RUN_SECONDS))
        owners = pod["metadata"].get("ownerReferences") or ()
        if seconds is None and any(each["kind"] == "Job" for each in owners):
            seconds = self.timings.job
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None and (seconds is None or deadline < seconds):
            return _End(float(deadline), _KILLED, _DEADLINE)
        if seconds is None:
            return None
        return _End(seconds, int(_number(annotation(pod, EXIT_CODE)) or 0))

    def _stop(self, pod: PodInfo) -> None:
        """Remove a terminating pod after its stop time; finalizers may keep the object.

        A preStop hook that sleeps keeps the pod so much longer, up to the end of its grace period.
        """
        if pod.uid in self._removed:
            return
        now = self.cluster.now()
        since = self._stopping.setdefault(pod.uid, now)
        stopped = since + self._stop_seconds(pod)
        if pod.stop_seconds:
            grace_end = parse_time(pod.deletion) or since
            stopped = max(stopped, min(since + pod.stop_seconds, grace_end))
        wait = stopped - now
        if wait > 0:
            self.enqueue(pod.key, after=wait)
            return
        self._removed.add(pod.uid)
        if not pod.finished:
            self._finish_if_kept(pod)
        self.cluster.delete_pod(pod, grace=0)

    def _stop_seconds(self, pod: PodInfo) -> float:
        """How long a deleted pod takes to stop; a finished one is removed at once."""
        if self.timings.stop is not None:
            return self.timings.stop
        found = None if pod.finished else self.cluster.get("Pod", *pod.key)
        return 0.0 if found is None else float(found["metadata"].get(_GRACE) or 0)

    def _finish_if_kept(self, pod: PodInfo) -> None:
        """Report a pod as killed whose object stays because of finalizers."""
        found = self.cluster.get("Pod", *pod.key)
        if found is not None and found["metadata"].get("finalizers"):
            self._update_status(pod.key, lambda it, at: finished_status(it, at, exit_code=_KILLED))

    def _set_ready(self, key: Key, *, ready: bool) -> None:
        self._update_status(key, lambda it, at: with_readiness(it, ready=ready, at=at))

    def _update_status(self, key: Key, status: Callable[[JsonObject, str], JsonObject]) -> None:
        at = self.cluster.timestamp()

        def edit(found: JsonObject) -> None:
            found["status"] = status(found, at)

        self.cluster.update("Pod", key, edit, "status")

    def _record_start(self, key: Key) -> None:
        pod = self.cluster.get("Pod", *key)
        if pod is None:
            return
        for container in pod["spec"].get("containers") or ():
            image, name = container.get("image", ""), container["name"]
            self.record(pod, "Pulled", f'Container image "{image}" already present on machine')
            self.record(pod, "Created", f"Container created: {name}")
            self.record(pod, "Started", f"Container started: {name}")

    def _allocate_ip(self) -> str:
        self._last_ip = (self._last_ip + 1) % _POD_CIDR_SIZE
        number = _POD_CIDR + self._last_ip
        return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def _reserve_ip(self, ip: str) -> None:
        """Continue after the IPs that an earlier run of the lab allocated."""
        parts = ip.split(".")
        if len(parts) == 4 and all(part.isdigit() for part in parts):
            number = 0
            for part in parts:
                number = number << 8 | int(part)
            if 0 <= number - _POD_CIDR < _POD_CIDR_SIZE:
                self._last_ip = max(self._last_ip, number - _POD_CIDR)


def _is_settled(pod: PodInfo) -> bool:
    """Whether a pod runs, is ready and has no end."""
    if pod.phase != "Running" or not pod.ready or pod.terminating or pod.has_end:
        return False
    return pod.owner is None or pod.owner[0] != "Job"


def _readiness(node: JsonObject) -> str:
    return str(condition(node, "Ready").get("status", ""))


def _node_ip(node: JsonObject) -> str:
    for each in (node.get("status") or {}).get("addresses") or ():
        if each.get("type") == "InternalIP":
            return str(each.get("address", ""))
    return "127.0.0.1"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
