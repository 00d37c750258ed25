"""Follows the pods of a simulated cluster: where they were, what replaced them, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podium.lab.controllers.framework.object_fields import condition, controller_of
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.what_if.plan.results import EvictedPod, TimelineEvent

if TYPE_CHECKING:
    from podium.lab.controllers.framework.pods import LabPods, PodInfo
    from podium.lab.registry.registry import Registry
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.pod import Pod

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class FollowedPod:
    """One pod, from its creation to its end; times are virtual seconds."""

    key: str
    uid: str
    #: Kind and name of the workload, such as `Deployment/web`; empty for a pod without one.
    workload: str
    daemon: bool
    node: str = ""
    created: float | None = None
    #: When it became ready, when it stopped serving, and when it was gone.
    ready: float | None = None
    stopped: float | None = None
    ended: float | None = None
    finished: bool = False
    terminating: bool = False


class PodFollower(Observer):
    """Records every pod of a registry from now on, and whom the scheduler evicts for whom."""

    def __init__(self, registry: Registry, pods: LabPods, time: Callable[[], float]) -> None:
        """Follow the *pods* that exist, and those that are created in *registry*."""
        self._registry, self._time = registry, time
        self.timeline: list[TimelineEvent] = []
        #: What happened to a cluster with pods before the timeline began, since the start.
        self.anyway: list[TimelineEvent] = []
        self._victims: set[str] = set()
        self.evicted: list[EvictedPod] = []
        self._recording = False
        self._began = 0.0
        self._workloads: dict[tuple[str, tuple[str, str, str]], str] = {}
        #: The pods that were there before and have not changed, by uid.
        self._unchanged = {pod.uid: pod for pod in pods.all.values()}
        self._had_pods = bool(self._unchanged)
        #: The nodes of the pods that were present when the timeline began and changed earlier,
        #: and of those that have changed since; by uid.
        self._nodes_at_begin: dict[str, str] = {}
        self._changed_since: dict[str, PodInfo] = {}
        self._without_node: list[str] = []
        #: All others.
        self.pods: dict[str, FollowedPod] = {}
        self._end = registry.subscribe(["Pod"], self._on_write)

    def begin(self) -> None:
        """Start the timeline; what happened before is where the plan starts from."""
        self._recording, self._began = True, self._time()
        self._nodes_at_begin = self._followed_nodes()
        self._without_node = [
            uid for uid, pod in self._unchanged.items() if not pod.node and pod.active
        ]

    def close(self) -> None:
        """Follow no further writes."""
        self._end()

    def nodes_before(self) -> dict[str, str]:
        """The nodes of pods when the timeline began, by uid; empty for a pod without a node.

        Pods that have a node and were never changed are left out, here and in `nodes_now`: there
        may be tens of thousands. So are pods that are finished or terminating.
        """
        changed = sorted(self._changed_since.values(), key=lambda pod: pod.key)
        found = {pod.uid: pod.node for pod in changed if pod.active}
        return found | self._nodes_at_begin | self._unchanged_without_node()

    def nodes_now(self) -> dict[str, str]:
        """The nodes of pods now, as in `nodes_before`."""
        return self._unchanged_without_node() | self._followed_nodes()

    def _followed_nodes(self) -> dict[str, str]:
        return {
            uid: pod.node
            for uid, pod in self.pods.items()
            if pod.ended is None and not pod.finished and not pod.terminating
        }

    def _unchanged_without_node(self) -> dict[str, str]:
        return {uid: "" for uid in self._without_node if uid in self._unchanged}

    def pod(self, uid: str) -> FollowedPod:
        """A pod that was or is there."""
        unchanged = self._unchanged.pop(uid, None)
        if unchanged is not None:
            self.pods[uid] = self._known(unchanged)
            if self._recording:
                self._changed_since[uid] = unchanged
        return self.pods[uid]

    def is_replica(self, key: str, workload: str) -> bool:
        """Whether the workload is a stateful set that has a replica of this name.

        A stateful set creates its pods in order: while one does not run, those after it are absent.
        """
        kind, *names = workload.split("/")
        found = self._registry.find(kind, names[1], names[0]) if kind == "StatefulSet" else None
        if found is None:
            return False
        spec = found["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        ordinal = int(key.rpartition("-")[2])
        return bool(first <= ordinal < first + spec.get("replicas", 1))

    def announce(self, text: str) -> None:
        """Add a step of a person, or of the plan, to the timeline."""
        self._add("change", "", text)

    @property
    def now(self) -> float:
        """Virtual seconds since the timeline began."""
        return self._time() - self._began

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Record the victims of a preemption."""
        preemption = result.decision.preemption
        node = preemption.node or "" if preemption is not None else ""
        for victim in victims:
            self._evicting(victim, node, result.pod.key)

    def group_evicting(self, group: str, victims: Sequence[Pod]) -> None:
        """Record the victims of a preemption for a pod group."""
        for victim in victims:
            self._evicting(victim.key, victim.spec.node_name, f"pod group {group}")

    def _evicting(self, victim: str, node: str, preemptor: str) -> None:
        if self._recording and self._count(victim):
            at = round(self.now, 3)
            self.evicted.append(EvictedPod(pod=victim, node=node, preemptor=preemptor, at=at))
            self._add("preempted", victim, f"pod {victim} is evicted for {preemptor}")

    def _count(self, victim: str) -> bool:
        """Count a victim; False if it was counted before, and not one that had its name."""
        namespace, _, name = victim.partition("/")
        pod = self._registry.find("Pod", name, namespace)
        uid = victim if pod is None else pod["metadata"]["uid"]
        is_new = uid not in self._victims
        self._victims.add(uid)
        return is_new

    def _add(self, what: str, name: str, text: str) -> None:
        event = TimelineEvent(at=round(self.now, 3), what=what, object=name, text=text)
        if self._recording:
            self.timeline.append(event)
        elif self._had_pods:
            self.anyway.append(event)

    def _on_write(self, _: str, old: JsonObject | None, new: JsonObject | None) -> None:
        item = new if new is not None else old
        assert item is not None
        uid = item["metadata"]["uid"]
        is_known = uid in self.pods or uid in self._unchanged
        pod = self.pod(uid) if is_known else None
        if new is None:
            if pod is not None:
                pod.ended = self.now
                pod.stopped = self.now if pod.stopped is None else pod.stopped
                self._add("gone", pod.key, f"pod {pod.key} is gone from {pod.node or 'the queue'}")
                if not self._recording:
                    del self.pods[uid]
            return
        if pod is None:
            pod = self.pods[uid] = self._followed(new)
            if self._recording:
                pod.created = self.now
            self._add("created", pod.key, f"pod {pod.key} is created")
        node = new["spec"].get("nodeName") or ""
        if node and not pod.node:
            pod.node = node
            self._add("bound", pod.key, f"pod {pod.key} is bound to {node}")
        self._follow_status(pod, new)

    def _follow_status(self, pod: FollowedPod, item: JsonObject) -> None:
        terminating = "deletionTimestamp" in item["metadata"]
        if terminating and not pod.terminating:
            pod.terminating, pod.stopped = True, self.now
            if pod.node:
                self._add("terminating", pod.key, f"pod {pod.key} on {pod.node} is terminating")
        if (item.get("status") or {}).get("phase") in _FINISHED and not pod.finished:
            pod.finished = True
            self._add("finished", pod.key, f"pod {pod.key} on {pod.node} has finished")
        if not self._recording or pod.ready is not None or pod.created is None:
            return
        if condition(item, "Ready").get("status") == "True":
            pod.ready = self.now
            self._add("running", pod.key, f"pod {pod.key} runs on {pod.node}")

    def _known(self, pod: PodInfo) -> FollowedPod:
        """A pod that was there before."""
        namespace, name = pod.key
        owner = pod.owner
        return FollowedPod(
            f"{namespace}/{name}",
            pod.uid,
            "" if owner is None else self._workload(owner, namespace),
            owner is not None and owner[0] == "DaemonSet",
            pod.node,
            stopped=self._time() if pod.terminating else None,
            finished=pod.finished,
            terminating=pod.terminating,
        )

    def _followed(self, item: JsonObject) -> FollowedPod:
        about = item["metadata"]
        owner = controller_of(item)
        workload = ""
        if owner is not None:
            named = (owner["kind"], owner["name"], str(owner.get("uid", "")))
            workload = self._workload(named, about["namespace"])
        return FollowedPod(
            key=f"{about['namespace']}/{about['name']}",
            uid=about["uid"],
            workload=workload,
            daemon=owner is not None and owner["kind"] == "DaemonSet",
        )

    def _workload(self, owner: tuple[str, str, str], namespace: str) -> str:
        """The workload that a user knows: the deployment, not its replica set."""
        known = self._workloads.get((namespace, owner))
        if known is not None:
            return known
        kind, name, _ = owner
        found = f"{kind}/{namespace}/{name}"
        if kind == "ReplicaSet":
            replica_set = self._registry.find("ReplicaSet", name, namespace)
            above = None if replica_set is None else controller_of(replica_set)
            if above is not None:
                found = f"{above['kind']}/{namespace}/{above['name']}"
        self._workloads[namespace, owner] = found
        return found
