"""Daemon sets: one pod on each node that wants it, placed by the scheduler.

The controller picks the nodes; each pod can go to one node only, by its node affinity.

Upstream: pkg/controller/daemon.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.controller_ref import claim, selector
from podium.lab.controllers.framework.object_fields import (
    is_leaving,
    key_of,
    labels_of,
    moment,
    uid_of,
)
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.lab.controllers.framework.pod_template import from_template
from podium.lab.controllers.workloads.controller_revisions import HASH, present_revision
from podium.lab.controllers.workloads.deployment_rollout import resolved
from podium.lab.controllers.workloads.replica_sets import available_in
from podium.objects.completing import daemons
from podium.objects.kinds.meta import JsonObject
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import PodSpec

_PREFIX: Final = "node.kubernetes.io/"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_HOST_NETWORK: Final = (("network-unavailable", "NoSchedule"),)
#: Pods made in one go; the rest follows when others had their turn.
_BURST: Final = 100


class DaemonSets(Controller):
    """Keeps one pod per node."""

    name: ClassVar = "daemonset-controller"
    hears_pods = True

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._relabelled: dict[Key, set[Key]] = {}
        self._nodes: dict[str, tuple[str, Node]] = {}
        #: The node that a pod is for, by uid.
        self._targets: dict[str, str] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of daemon sets and nodes."""
        return {"DaemonSet": self.hear_own, "Node": self.hear_node}

    def hear_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A node came, went, or changed in a way that concerns who goes there."""
        if old is not None and new is not None and _choice(old) == _choice(new):
            return
        for each in self.cluster.all("DaemonSet"):
            self.add(key_of(each))

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod of a daemon set changed, or one that may be adopted."""
        pod = new or old
        assert pod is not None
        if new is None:
            self._targets.pop(pod.uid, None)
        relabelled = old is not None and new is not None and old.labels is not new.labels
        for each in (old, new):
            if each is not None and each.owner is not None and each.owner[0] == "DaemonSet":
                key = (each.key[0], each.owner[1])
                if relabelled:
                    self._relabelled.setdefault(key, set()).add(each.key)
                self.add(key)

    def sync(self, key: Any) -> None:
        """Make and delete pods until every node has what it should."""
        owner = self.cluster.get("DaemonSet", *key)
        if owner is None:
            self._relabelled.pop(key, None)
            return
        wanted = selector(owner["spec"].get("selector"))
        claim(self.cluster, owner, wanted, self._relabelled.pop(key, set()))
        template = _template(owner)
        tag = present_revision(self.cluster, owner)
        spec = msgspec.convert(template["spec"], PodSpec)
        placed: dict[str, list[PodFacts]] = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            placed.setdefault(self._target(pod), []).append(pod)
        if not is_leaving(owner):
            self._place(owner, template, spec, tag, placed)
            self._roll(owner, tag, len(placed))
        self._report(owner, spec, tag)

    def _target(self, pod: PodFacts) -> str:
        """The node that a pod is for, bound or not."""
        if pod.node:
            return pod.node
        known = self._targets.get(pod.uid)
        if known is None:
            whole = self.cluster.get("Pod", *pod.key)
            known = self._targets[pod.uid] = "" if whole is None else _only_node(whole)
        return known

    def _wanted_on(self, spec: PodSpec, node: JsonObject) -> bool:
        name, version = node["metadata"]["name"], node["metadata"].get("resourceVersion", "")
        known = self._nodes.get(name)
        if known is None or known[0] != version:
            known = self._nodes[name] = (version, msgspec.convert(node, Node))
        return daemons.wanted_on(spec, known[1])

    def _place(
        self,
        owner: JsonObject,
        template: JsonObject,
        spec: PodSpec,
        tag: str,
        placed: dict[str, list[PodFacts]],
    ) -> None:
        budget = _BURST
        for node in self.cluster.all("Node"):
            name = node["metadata"]["name"]
            pods = placed.get(name, [])
            wanted = self._wanted_on(spec, node)
            for pod in pods:
                ended = pod.finished and not pod.leaving
                if ended or (not wanted and not pod.leaving and _must_go(spec, node)):
                    self.cluster.delete_pod(pod)
            if wanted and not pods:
                if budget <= 0:
                    self.add(key_of(owner))
                    return
                budget -= 1
                self._make(owner, template, tag, name)
            for extra in sorted((p for p in pods if p.active), key=_seniority)[1:]:
                self.cluster.delete_pod(extra)

    def _make(self, owner: JsonObject, template: JsonObject, tag: str, node: str) -> None:
        pod = from_template(template, owner)
        pod["metadata"]["labels"][HASH] = tag
        pod["spec"] = _bound_to(pod["spec"], node)
        made = self.cluster.create("Pod", pod)
        self._targets[uid_of(made)] = node
        text = f"Created pod: {made['metadata']['name']}"
        self.cluster.events.normal(owner, "SuccessfulCreate", text, self.name)

    def _roll(self, owner: JsonObject, tag: str, nodes: int) -> None:
        """Replace pods of an older template, a few at a time."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        most = max(resolved(rolling.get("maxUnavailable", 1), nodes, up=True), 1)
        pods = [p for p in self.cluster.pods.of_owner(uid_of(owner)) if not p.finished]
        missing = sum(pod.leaving or not pod.ready for pod in pods)
        old = [pod for pod in pods if pod.active and pod.labels.get(HASH) != tag]
        for pod in sorted(old, key=lambda each: each.ready):
            if pod.ready:
                if missing >= most:
                    return
                missing += 1
            self.cluster.delete_pod(pod)

    def _report(self, owner: JsonObject, spec: PodSpec, tag: str) -> None:
        key = key_of(owner)
        present = self.cluster.get("DaemonSet", *key)
        if present is None:
            return
        owner, now = present, self.cluster.now()
        min_ready = owner["spec"].get("minReadySeconds") or 0
        on: dict[str, PodFacts] = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            if pod.active:
                on[self._target(pod)] = pod
        wanted = [
            node["metadata"]["name"]
            for node in self.cluster.all("Node")
            if self._wanted_on(spec, node)
        ]
        there = [on[name] for name in wanted if name in on]
        waits = [available_in(pod, min_ready, now) for pod in there]
        available = sum(wait is not None and wait <= 0 for wait in waits)
        later = [wait for wait in waits if wait]
        if later:
            self.add(key, after=min(later))
        status: JsonObject = {
            "currentNumberScheduled": len(there),
            "numberMisscheduled": len(on.keys() - set(wanted)),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(pod.ready for pod in there),
            "observedGeneration": owner["metadata"].get("generation", 1),
            "updatedNumberScheduled": sum(pod.labels.get(HASH) == tag for pod in there),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        always = {"currentNumberScheduled", "numberMisscheduled", "numberReady"}
        always.add("desiredNumberScheduled")
        status = {name: n for name, n in status.items() if n or name in always}
        self.cluster.report(owner, status)


def _template(owner: JsonObject) -> JsonObject:
    """The template with the tolerations that every daemon has."""
    template = owner["spec"]["template"]
    spec = template.get("spec") or {}
    tolerations = list(spec.get("tolerations") or ())
    for name, effect in (*_TOLERATED, *(_HOST_NETWORK if spec.get("hostNetwork") else ())):
        added = {"key": f"{_PREFIX}{name}", "operator": "Exists", "effect": effect}
        if added not in tolerations:
            tolerations.append(added)
    return {**template, "spec": {**spec, "tolerations": tolerations}}


def _bound_to(spec: JsonObject, node: str) -> JsonObject:
    """The pod for one node: what the template required of nodes gives way to the node's name."""
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    affinity = spec.get("affinity") or {}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def _only_node(pod: JsonObject) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _must_go(spec: PodSpec, node: JsonObject) -> bool:
    """Whether a daemon that would not be put on a node now may not stay there, either.

    Taints that only keep pods from coming do not drive them away.
    """
    taints = [t for t in node["spec"].get("taints") or () if t.get("effect") == "NoExecute"]
    lenient = {**node, "spec": {**node["spec"], "taints": taints}}
    return not daemons.wanted_on(spec, msgspec.convert(lenient, Node))


def _choice(node: JsonObject) -> tuple[Any, ...]:
    """What decides whether a daemon goes to a node."""
    return labels_of(node), node["spec"].get("taints") or [], node["spec"].get("unschedulable")


def _seniority(pod: PodFacts) -> tuple[bool, float]:
    return not pod.ready, moment(pod.created) or 0.0
