"""Stand-ins for the kubelets of all nodes: pods that are bound come up, end, and go away.

Nothing runs. A pod is reported as being made, then as running; pods of jobs end after a while;
a pod that is deleted is let go. The kubelet of a node that is unreachable does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import annotation, condition, moment
from podium.lab.controllers.framework.pod_info import EXIT_CODE, RUN_SECONDS, Key, PodFacts
from podium.lab.controllers.nodes import pod_status
from podium.objects.kinds.meta import JsonObject

#: With more pods than this on their way up, the step in between is not reported.
_BUSY: Final = 20
_POOL: Final = 10 << 24 | 64 << 16  # 10.64.0.0/10
_POOL_SIZE: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds."""

    start: float = 0.15
    stop: float = 0.5
    #: How long the pods of jobs run.
    job: float = 3.0


class Kubelets(Controller):
    """Every node's kubelet."""

    name: ClassVar = "kubelet"
    hears_pods = True

    def __init__(self, cluster: Cluster, pace: Pace) -> None:
        """Work on *cluster* at some *pace*."""
        super().__init__(cluster)
        self.pace = pace
        self._next_address = 0
        #: When pods were first seen on their way up or down, by uid.
        self._starting: dict[str, float] = {}
        self._stopping: dict[str, float] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of nodes."""
        return {"Node": self.hear_node}

    def hear_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A node came, or became reachable or not."""
        if new is None or (old is not None and _readiness(old) == _readiness(new)):
            return
        for key in self.cluster.pods.on_node(new["metadata"]["name"]):
            self.add(key)

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod was bound, is leaving, or changed its phase."""
        if new is None:
            assert old is not None
            self._starting.pop(old.uid, None)
            self._stopping.pop(old.uid, None)
            return
        if not new.node:
            return
        if old is None or not old.node:
            self._note_address(new.ip)
        elif old.leaving == new.leaving and old.phase == new.phase:
            return
        self.add(new.key)

    def sync(self, key: Any) -> None:
        """Bring a pod one step further."""
        pod = self.cluster.pods.all.get(key)
        if pod is None or not pod.node:
            return
        node = self.cluster.get("Node", "", pod.node)
        if node is None or _readiness(node) == "Unknown":
            if pod.ready and not pod.leaving:
                self._report(key, lambda found, at: pod_status.ready(found, is_so=False, at=at))
            return
        if pod.leaving:
            self._stop(pod)
        elif pod.phase == "Pending":
            self._start(pod, node)
        elif pod.phase == "Running":
            self._go_on(pod, node)

    def _start(self, pod: PodFacts, node: JsonObject) -> None:
        now = self.cluster.now()
        host = _address(node)
        first = self._starting.get(pod.uid)
        if first is None:
            busy = len(self._starting) > _BUSY
            self._starting[pod.uid] = now
            if self.pace.start > 0:
                self.add(pod.key, after=self.pace.start)
                if not busy:
                    self._report(pod.key, lambda found, at: pod_status.creating(found, host, at))
                return
        elif now < first + self.pace.start:
            self.add(pod.key, after=first + self.pace.start - now)
            return
        self._starting.pop(pod.uid, None)
        own = self._address_for_pod()

        def up(found: JsonObject, at: str) -> JsonObject:
            address = host if found["spec"].get("hostNetwork") else own
            return pod_status.running(found, host, address, at)

        self._report(pod.key, up)
        if self.cluster.events.affordable():
            self._tell(pod.key)

    def _go_on(self, pod: PodFacts, node: JsonObject) -> None:
        """A running pod: follow the readiness of its node; end it when its time has come."""
        ready = _readiness(node) != "False"
        if ready != pod.ready:
            whole = self.cluster.get("Pod", *pod.key)
            if whole is not None and pod_status.started_here(whole):
                self._report(pod.key, lambda found, at: pod_status.ready(found, is_so=ready, at=at))
        if not self._may_end(pod):
            return
        found = self.cluster.get("Pod", *pod.key)
        if found is None or not pod_status.started_here(found):
            return
        now = self.cluster.now()
        since = moment(found["status"].get("startTime")) or now
        ends, code, reason = self._end(found)
        if ends is None:
            return
        if now < since + ends:
            self.add(pod.key, after=since + ends - now)
            return
        self._report(
            pod.key,
            lambda found, at: pod_status.ended(found, at, exit_code=code, reason=reason),
        )

    def _may_end(self, pod: PodFacts) -> bool:
        return pod.ends or (pod.owner is not None and pod.owner[0] == "Job")

    def _end(self, pod: JsonObject) -> tuple[float | None, int, str]:
        """After how many seconds a pod ends, its exit code and the reason if there is one."""
        ends: float | None = None
        said = _number(annotation(pod, RUN_SECONDS))
        owners = pod["metadata"].get("ownerReferences") or ()
        if said is not None:
            ends = said
        elif any(each["kind"] == "Job" for each in owners):
            ends = self.pace.job
        code = int(_number(annotation(pod, EXIT_CODE)) or 0)
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None and (ends is None or deadline < ends):
            return float(deadline), 137, "DeadlineExceeded"
        return ends, code, ""

    def _stop(self, pod: PodFacts) -> None:
        now = self.cluster.now()
        first = self._stopping.get(pod.uid)
        if first is None:
            self._stopping[pod.uid] = first = now
        wait = first + self.pace.stop - now
        if wait > 0:
            self.add(pod.key, after=wait)
        elif first > 0:
            self._stopping[pod.uid] = -1.0  # once; finalizers may keep it
            if not pod.finished:
                self._last_words(pod)
            self.cluster.delete_pod(pod, grace=0)

    def _last_words(self, pod: PodFacts) -> None:
        """A pod that somebody holds back is reported as ended."""
        found = self.cluster.get("Pod", *pod.key)
        if found is not None and found["metadata"].get("finalizers"):
            self._report(pod.key, lambda it, at: pod_status.ended(it, at, exit_code=137))

    def _report(self, key: Key, status: Callable[[JsonObject, str], JsonObject]) -> None:
        at = self.cluster.timestamp()

        def told(found: JsonObject) -> None:
            found["status"] = status(found, at)

        self.cluster.change("Pod", key, told, "status")

    def _tell(self, key: Key) -> None:
        pod = self.cluster.get("Pod", *key)
        for container in () if pod is None else pod["spec"].get("containers") or ():
            assert pod is not None
            image, name = container.get("image", ""), container["name"]
            events = self.cluster.events
            text = f'Container image "{image}" already present on machine'
            events.normal(pod, "Pulled", text, self.name)
            events.normal(pod, "Created", f"Container created: {name}", self.name)
            events.normal(pod, "Started", f"Container started: {name}", self.name)

    def _address_for_pod(self) -> str:
        self._next_address = (self._next_address + 1) % _POOL_SIZE
        number = _POOL + self._next_address
        return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def _note_address(self, ip: str) -> None:
        """Do not give out again what an earlier run of the lab gave out."""
        parts = ip.split(".")
        if len(parts) == 4 and all(part.isdigit() for part in parts):
            number = 0
            for part in parts:
                number = number << 8 | int(part)
            if 0 <= number - _POOL < _POOL_SIZE:
                self._next_address = max(self._next_address, number - _POOL)


def _readiness(node: JsonObject) -> str:
    return str(condition(node, "Ready").get("status", ""))


def _address(node: JsonObject) -> str:
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
