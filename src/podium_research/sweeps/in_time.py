"""A trace replayed in time: pods arrive and leave while the clock of a simulated cluster runs.

Scheduler, API server and controllers are the real ones on virtual time: pods that fit nowhere wait
in the queue, and are tried again when others leave.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from podium.cluster.simulation import Step
from podium.engine.state.accounting import amount
from podium.lab.controllers.framework.pods import RUN_SECONDS
from podium.scheduler.state.observers import Observer
from podium.virtual_cluster.cluster import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.lab.registry.registry import Registry
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.observers import AttemptResult
    from podium.virtual_cluster.history import LoggedWrite
    from podium_research.sweeps.runs import Measure
    from podium_research.traces.trace import Trace

#: The image of pods whose trace names none.
IMAGE = "pause"
_DELETE, _CREATE = 0, 1
_READY = [{"type": "Ready", "status": "True"}]


def run_in_time(
    trace: Trace, chosen: ChosenProfiles, seed: int, measure: Measure | None = None
) -> dict[str, float]:
    """The figures of a replay; *measure* sees every attempt and may add figures."""
    with SimulatedCluster(seed=seed) as cluster:
        cluster.load(_first_objects(trace))
        writes = cluster.record("Pod")
        cluster.add_scheduler(chosen, observers=[_Steps(measure)] if measure is not None else [])
        clock = TraceClock()
        for event in _events(trace):
            clock.advance(cluster, event.time)
            event.act(cluster.registry)
        cluster.run_until_quiet()
        found = figures(trace, writes, clock)
    return {**found, **(measure.figures() if measure is not None else {})}


class TraceClock:
    """The time of a trace on a cluster that leaves out the time in which nothing can happen.

    Traces are months long, and most of that time no pod waits for anything but the next event.
    """

    def __init__(self) -> None:
        #: Time of the cluster, and how much of the trace's time was left out until then.
        self._left_out: list[tuple[float, float]] = [(0.0, 0.0)]

    def advance(self, cluster: SimulatedCluster, time: float) -> None:
        """Let time pass until *time* of the trace, as far as anything happens."""
        left_out = self._left_out[-1][1]
        target = time - left_out
        if cluster.time < target and cluster.run_until_quiet(target - cluster.time):
            rest = max(0.0, target - cluster.time)
            self._left_out.append((cluster.time, left_out + rest))

    def time_of(self, cluster_time: float) -> float:
        """The time of the trace at some time of the cluster, after the events of that time."""
        place = bisect_right(self._left_out, (cluster_time, float("inf"))) - 1
        return cluster_time + self._left_out[place][1]


class _Steps(Observer):
    """Tells a measure about attempts."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def attempted(self, result: AttemptResult) -> None:
        """Tell the measure about the pod and the decision."""
        self._measure.step(Step(result.pod, result.number, result.decision))


@dataclass(frozen=True, slots=True)
class _Event:
    """Something that a client does at some time."""

    time: float
    #: `_DELETE` or `_CREATE`; of one time, deletions come first.
    what: int
    kind: str
    body: JsonObject

    def act(self, registry: Registry) -> None:
        """Create the object, or delete it if it is still there."""
        about = self.body["metadata"]
        name, namespace = about["name"], about.get("namespace", "")
        if self.what == _CREATE:
            registry.create(self.kind, self.body, namespace=namespace)
        elif registry.find(self.kind, name, namespace) is not None:
            registry.delete(self.kind, name, namespace)


def _events(trace: Trace) -> list[_Event]:
    """Arrivals and departures in the order of time."""
    found = []
    for node in trace.nodes:
        body = _node_body(node.node)
        if node.arrives > 0:
            found.append(_Event(node.arrives, _CREATE, "Node", body))
        if node.leaves is not None:
            found.append(_Event(node.leaves, _DELETE, "Node", body))
    for pod in trace.pods:
        body = _pod_body(pod.pod, pod.seconds)
        found.append(_Event(pod.arrives, _CREATE, "Pod", body))
        if pod.leaves is not None:
            found.append(_Event(max(pod.leaves, pod.arrives), _DELETE, "Pod", body))
    return sorted(found, key=lambda event: (event.time, event.what))


def _first_objects(trace: Trace) -> Iterator[JsonObject]:
    """What is there from the beginning: the namespaces, other objects, and the first nodes."""
    known = {each.name for each in trace.others.of("Namespace")}
    for name in dict.fromkeys(each.pod.namespace for each in trace.pods):
        if name not in known | {"default"}:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for priority in sorted({each.pod.spec.priority or 0 for each in trace.pods} - {0}):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": _class_name(priority)},
            "value": priority,
        }
    for kind, _, item in trace.others.everything():
        if kind != "Node":
            yield {"apiVersion": "v1", "kind": kind, **msgspec.to_builtins(item)}
    for each in trace.nodes:
        if each.arrives <= 0:
            yield _node_body(each.node)


def _class_name(priority: int) -> str:
    """The name of the PriorityClass of this value."""
    return f"priority-{priority}".replace("--", "-minus-")


def _node_body(node: Node) -> JsonObject:
    """The node as an API object that reports to be ready."""
    body: JsonObject = {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
    status = body.setdefault("status", {})
    if not any(each.get("type") == "Ready" for each in status.get("conditions", ())):
        status["conditions"] = [*status.get("conditions", ()), *_READY]
    return body


def _pod_body(pod: Pod, seconds: float | None) -> JsonObject:
    """The pod as an API object, with an image, and with its time to run as an annotation."""
    body: JsonObject = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
    body["metadata"].pop("uid", None)
    for container in body["spec"].get("containers", ()):
        container.setdefault("image", IMAGE)
        resources = container.get("resources") or {}
        extended = {n: q for n, q in (resources.get("requests") or {}).items() if "/" in n}
        if extended:  # an API server wants a limit where nothing can be overcommitted
            resources["limits"] = {**extended, **(resources.get("limits") or {})}
    priority = body["spec"].pop("priority", 0)
    if priority:  # an API server takes it from a class only
        body["spec"]["priorityClassName"] = _class_name(priority)
    if seconds is not None:
        body["metadata"].setdefault("annotations", {})[RUN_SECONDS] = f"{seconds:g}"
        body["spec"].setdefault("restartPolicy", "Never")
    return body


# Figures --------------------------------------------------------------------------------------


def figures(trace: Trace, writes: Iterable[LoggedWrite], clock: TraceClock) -> dict[str, float]:
    """How long pods waited, and how full the cluster was, from the writes to pods."""
    replay = _Replay(trace)
    for write in writes:
        replay.add(write, clock.time_of(write.time))
    return replay.figures()


class _Replay:
    """Follows the pods of a replay."""

    def __init__(self, trace: Trace) -> None:
        self._room: Counter[str] = Counter()
        for each in trace.nodes:
            for name, quantity in (each.node.status.allocatable or {}).items():
                self._room[name] += amount(name, quantity)
        self._leaves = {each.pod.key: each.leaves for each in trace.pods if each.leaves is not None}
        self._created: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        self._finished = self._evicted = 0
        #: Requested now, the most that was requested, and the sum over time.
        self._used: Counter[str] = Counter()
        self._peak: Counter[str] = Counter()
        self._sum: dict[str, float] = dict.fromkeys(self._room, 0.0)
        self._time = 0.0

    def add(self, write: LoggedWrite, time: float) -> None:
        """Take note of one write to a pod."""
        for name in self._sum:
            self._sum[name] += self._used[name] * (time - self._time)
        self._time = time
        if write.before is None:
            self._created[write.key] = time
        ran, runs = _is_running(write.before), _is_running(write.after)
        if runs and not ran:
            self._waited.setdefault(write.key, time - self._created[write.key])
            self._use(write.object, 1)
        if ran and not runs:
            self._use(write.object, -1)
            ended_itself = write.after is not None
            self._finished += ended_itself
            leaves = self._leaves.get(write.key, float("inf"))
            self._evicted += not ended_itself and time < leaves

    def _use(self, pod: JsonObject, sign: int) -> None:
        for container in pod["spec"].get("containers", ()):
            for name, quantity in (container.get("resources", {}).get("requests") or {}).items():
                self._used[name] += sign * amount(name, quantity)
                self._peak[name] = max(self._peak[name], self._used[name])

    def figures(self) -> dict[str, float]:
        """Pods, seconds that they waited, and the share of each resource requested."""
        waited = sorted(self._waited.values())
        found: dict[str, float] = {
            "pods": len(self._created),
            "placed": len(waited),
            "finished": self._finished,
            "evicted": self._evicted,
            "wait_mean_seconds": round(sum(waited) / len(waited), 3) if waited else 0.0,
            "wait_p50_seconds": round(_percentile(waited, 50), 3),
            "wait_p99_seconds": round(_percentile(waited, 99), 3),
            "end_seconds": round(self._time, 3),
        }
        for name, room in sorted(self._room.items()):
            if room and name != "pods":
                mean = self._sum[name] / self._time if self._time else 0.0
                found[f"{name}_mean_percent"] = round(100 * mean / room, 4)
                found[f"{name}_peak_percent"] = round(100 * self._peak[name] / room, 4)
        return found


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest number that so many percent of the numbers do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0.0


def _is_running(pod: JsonObject | None) -> bool:
    """Whether a pod has a node and has not finished."""
    if pod is None or not pod["spec"].get("nodeName"):
        return False
    return pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
