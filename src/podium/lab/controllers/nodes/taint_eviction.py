"""Taints with the effect NoExecute: who does not put up with them has to go, some after a while.

Upstream: pkg/controller/tainteviction.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import moment
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.objects.kinds.meta import JsonObject


class TaintEviction(Controller):
    """Deletes pods from nodes that they do not tolerate any more."""

    name: ClassVar = "taint-eviction-controller"
    hears_pods = True

    def hears(self) -> dict[str, Hearing]:
        """Of nodes."""
        return {"Node": self.hear_node}

    def hear_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """The taints of a node changed."""
        if new is None:
            return
        before = [] if old is None else evicting(old)
        if evicting(new) != before:
            for key in self.cluster.pods.on_node(new["metadata"]["name"]):
                self.add(key)

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod came to a node."""
        if new is not None and new.node and not new.leaving and (old is None or not old.node):
            node = self.cluster.get("Node", "", new.node)
            if node is not None and evicting(node):
                self.add(new.key)

    def sync(self, key: Any) -> None:
        """Delete the pod, or look again when its time is over."""
        facts = self.cluster.pods.all.get(key)
        if facts is None or not facts.node or facts.leaving:
            return
        node = self.cluster.get("Node", "", facts.node)
        taints = [] if node is None else evicting(node)
        pod = self.cluster.get("Pod", *key)
        if not taints or pod is None:
            return
        now = self.cluster.now()
        due = leaves_at(pod["spec"].get("tolerations") or [], taints, now)
        if due is None:
            return
        if due > now:
            self.add(key, after=due - now)
            return
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self.cluster.events.normal(pod, "TaintManagerEviction", text, self.name)
        self.cluster.delete_pod(facts)


def evicting(node: JsonObject) -> list[JsonObject]:
    """The taints of a node that make pods leave."""
    return [each for each in node["spec"].get("taints") or () if each.get("effect") == "NoExecute"]


def leaves_at(tolerations: list[JsonObject], taints: list[JsonObject], now: float) -> float | None:
    """When a pod has to go: now, later, or never (None)."""
    due: float | None = None
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return now
        limits = [s for each in matching if (s := each.get("tolerationSeconds")) is not None]
        if limits:
            since = moment(taint.get("timeAdded")) or now
            ends = since + max(min(limits), 0)
            due = ends if due is None else min(due, ends)
    return due


def tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    """Whether a toleration covers a taint; an empty key or effect covers any."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return same and toleration.get("operator", "") in {"", "Equal"}
