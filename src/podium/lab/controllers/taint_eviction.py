"""The taint eviction controller: deletes pods that do not tolerate the NoExecute taints of a node.

Upstream: pkg/controller/tainteviction.
"""

from __future__ import annotations

from typing import ClassVar

from podium.lab.api.encoding import parse_time
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import Key
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.objects.kinds.meta import JsonObject


class TaintEvictionController(Controller[Key]):
    """Evicts pods at once, or after their `tolerationSeconds`. Its keys are those of pods."""

    name: ClassVar = "taint-eviction-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch nodes and pods."""
        super().__init__(cluster)
        self.watch("Node", self._on_node)
        self.watch_pods(self._on_pod, listed=self._on_listed_pods)

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            return
        before = [] if old is None else no_execute_taints(old)
        if no_execute_taints(new) != before:
            for key in self.cluster.pods.on_node(new["metadata"]["name"]):
                self.enqueue(key)

    def _on_listed_pods(self, pods: LabPods) -> None:
        nodes = self.cluster.list("Node")
        tainted = {node["metadata"]["name"] for node in nodes if no_execute_taints(node)}
        for pod in pods.all.values() if tainted else ():
            if pod.node in tainted and not pod.terminating:
                self.enqueue(pod.key)

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        is_bound = new is not None and new.node and (old is None or not old.node)
        if new is not None and is_bound and not new.terminating:
            node = self.cluster.get("Node", "", new.node)
            if node is not None and no_execute_taints(node):
                self.enqueue(new.key)

    def sync(self, key: Key) -> None:
        """Delete a pod whose time on its tainted node is over; otherwise check again then."""
        info = self.cluster.pods.all.get(key)
        if info is None or not info.node or info.terminating:
            return
        node = self.cluster.get("Node", "", info.node)
        taints = [] if node is None else no_execute_taints(node)
        pod = self.cluster.get("Pod", *key)
        if not taints or pod is None:
            return
        now = self.cluster.now()
        due = eviction_time(pod["spec"].get("tolerations") or [], taints, now)
        if due is None:
            return
        if due > now:
            self.enqueue(key, after=due - now)
            return
        self.record(pod, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")
        self.cluster.delete_pod(info)


def no_execute_taints(node: JsonObject) -> list[JsonObject]:
    """The taints of a node with the effect NoExecute."""
    return [each for each in node["spec"].get("taints") or () if each.get("effect") == "NoExecute"]


def eviction_time(
    tolerations: list[JsonObject], taints: list[JsonObject], now: float
) -> float | None:
    """When a pod with these tolerations has to be evicted; None if it may stay."""
    due: float | None = None
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return now
        limits = [s for each in matching if (s := each.get("tolerationSeconds")) is not None]
        if limits:
            since = parse_time(taint.get("timeAdded")) or now
            ends = since + max(min(limits), 0)
            due = ends if due is None else min(due, ends)
    return due


def tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    """Whether a toleration matches a taint; an empty key or effect matches any."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return same and toleration.get("operator", "") in {"", "Equal"}
