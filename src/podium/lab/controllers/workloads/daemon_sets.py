"""The daemon set controller: one pod on every eligible node.

The controller selects the nodes; each pod has a node affinity to one node, and the scheduler binds
it there.

Upstream: pkg/controller/daemon.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from podium.lab.api.encoding import parse_time
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import (
    BURST,
    PodOwningController,
    pod_from_template,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    int_or_percent,
    is_terminating,
    key_of,
    labels_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.controllers.workloads.controller_revisions import HASH_LABEL, current_revision_hash
from podium.lab.controllers.workloads.replica_sets import seconds_until_available
from podium.objects.completing import daemons
from podium.objects.kinds.meta import JsonObject
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import PodSpec

_PREFIX: Final = "node.kubernetes.io/"
#: Names and effects of the taints that pods of daemon sets tolerate.
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = (("network-unavailable", "NoSchedule"),)
#: Numbers of the status that are written even when they are 0.
_ALWAYS_WRITTEN: Final = frozenset(
    {"currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"}
)


class DaemonSetController(PodOwningController[Key]):
    """Creates a pod for every eligible node and deletes pods from the others."""

    name: ClassVar = "daemonset-controller"
    kind: ClassVar = "DaemonSet"

    def __init__(self, cluster: Cluster) -> None:
        """Watch daemon sets, nodes and pods."""
        super().__init__(cluster)
        #: Decoded nodes by name, with the resource version they were decoded from.
        self._nodes: dict[str, tuple[str, Node]] = {}
        #: The node that a pod is meant for, by the pod's uid.
        self._target_nodes: dict[str, str] = {}
        self.watch("Node", self._on_node)

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and new is not None and _placement(old) == _placement(new):
            return
        for each in self.cluster.list("DaemonSet"):
            self.enqueue(key_of(each))

    def on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        """Enqueue the sets of a pod, and forget the node of one that is gone."""
        if old is not None and new is None:
            self._target_nodes.pop(old.uid, None)
        super().on_pod(old, new)

    def sync(self, key: Key) -> None:
        """Adopt and release pods, create and delete them per node, then update the status."""
        owner = self.owner_with_pods(key)
        if owner is None:
            return
        template = _template_with_tolerations(owner)
        tag = current_revision_hash(self.cluster, owner)
        spec = msgspec.convert(template["spec"], PodSpec)
        by_node: dict[str, list[PodInfo]] = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            by_node.setdefault(self._target_node(pod), []).append(pod)
        if not is_terminating(owner):
            self._sync_nodes(owner, template, spec, tag, by_node)
            self._replace_outdated(owner, tag, len(by_node))
        self._update_status(owner, spec, tag)

    def _target_node(self, pod: PodInfo) -> str:
        """The node that a pod is bound to or has its node affinity to."""
        if pod.node:
            return pod.node
        known = self._target_nodes.get(pod.uid)
        if known is None:
            whole = self.cluster.get("Pod", *pod.key)
            known = self._target_nodes[pod.uid] = "" if whole is None else _affinity_node(whole)
        return known

    def _is_eligible(self, spec: PodSpec, node: JsonObject) -> bool:
        name, version = node["metadata"]["name"], node["metadata"].get("resourceVersion", "")
        known = self._nodes.get(name)
        if known is None or known[0] != version:
            known = self._nodes[name] = (version, msgspec.convert(node, Node))
        return daemons.wanted_on(spec, known[1])

    def _sync_nodes(
        self,
        owner: JsonObject,
        template: JsonObject,
        spec: PodSpec,
        tag: str,
        by_node: dict[str, list[PodInfo]],
    ) -> None:
        budget = BURST
        for node in self.cluster.list("Node"):
            name = node["metadata"]["name"]
            pods = by_node.get(name, [])
            eligible = self._is_eligible(spec, node)
            for pod in pods:
                failed = pod.finished and not pod.terminating
                if failed or (not eligible and not pod.terminating and _must_leave(spec, node)):
                    self.cluster.delete_pod(pod)
            if eligible and not pods:
                if budget <= 0:
                    self.enqueue(key_of(owner))
                    return
                budget -= 1
                self._create_pod(owner, template, tag, name)
            for duplicate in sorted((p for p in pods if p.active), key=_seniority)[1:]:
                self.cluster.delete_pod(duplicate)

    def _create_pod(self, owner: JsonObject, template: JsonObject, tag: str, node: str) -> None:
        pod = pod_from_template(template, owner)
        pod["metadata"]["labels"][HASH_LABEL] = tag
        pod["spec"] = _with_node_affinity(pod["spec"], node)
        self._target_nodes[uid_of(self.create_pod(owner, pod))] = node

    def _replace_outdated(self, owner: JsonObject, tag: str, nodes: int) -> None:
        """Delete pods of an older template, as many as `maxUnavailable` allows."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        limit = rolling.get("maxUnavailable", 1)
        max_unavailable = max(int_or_percent(limit, nodes, round_up=True), 1)
        pods = [p for p in self.cluster.pods.of_owner(uid_of(owner)) if not p.finished]
        unavailable = sum(pod.terminating or not pod.ready for pod in pods)
        outdated = [pod for pod in pods if pod.active and pod.labels.get(HASH_LABEL) != tag]
        for pod in sorted(outdated, key=lambda each: each.ready):
            if pod.ready:
                if unavailable >= max_unavailable:
                    return
                unavailable += 1
            self.cluster.delete_pod(pod)

    def _update_status(self, owner: JsonObject, spec: PodSpec, tag: str) -> None:
        key = key_of(owner)
        present = self.cluster.get("DaemonSet", *key)
        if present is None:
            return
        owner, now = present, self.cluster.now()
        min_ready_seconds = owner["spec"].get("minReadySeconds") or 0
        on_node: dict[str, PodInfo] = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            if pod.active:
                on_node[self._target_node(pod)] = pod
        eligible = [
            node["metadata"]["name"]
            for node in self.cluster.list("Node")
            if self._is_eligible(spec, node)
        ]
        scheduled = [on_node[name] for name in eligible if name in on_node]
        waits = [seconds_until_available(pod, min_ready_seconds, now) for pod in scheduled]
        available = sum(wait is not None and wait <= 0 for wait in waits)
        later = [wait for wait in waits if wait]
        if later:
            self.enqueue(key, after=min(later))
        status: JsonObject = {
            "currentNumberScheduled": len(scheduled),
            "numberMisscheduled": len(on_node.keys() - set(eligible)),
            "desiredNumberScheduled": len(eligible),
            "numberReady": sum(pod.ready for pod in scheduled),
            "observedGeneration": owner["metadata"].get("generation", 1),
            "updatedNumberScheduled": sum(pod.labels.get(HASH_LABEL) == tag for pod in scheduled),
            "numberAvailable": available,
            "numberUnavailable": len(eligible) - available,
        }
        status = {name: n for name, n in status.items() if n or name in _ALWAYS_WRITTEN}
        self.cluster.update_status(owner, status)


def _template_with_tolerations(owner: JsonObject) -> JsonObject:
    """The pod template with the tolerations that all pods of daemon sets get."""
    template = owner["spec"]["template"]
    spec = template.get("spec") or {}
    tolerations = list(spec.get("tolerations") or ())
    on_host = _TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ()
    for name, effect in (*_TOLERATED, *on_host):
        added = {"key": f"{_PREFIX}{name}", "operator": "Exists", "effect": effect}
        if added not in tolerations:
            tolerations.append(added)
    return {**template, "spec": {**spec, "tolerations": tolerations}}


def _with_node_affinity(spec: JsonObject, node: str) -> JsonObject:
    """The pod spec with a required affinity to one node instead of that of the template."""
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    affinity = spec.get("affinity") or {}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def _affinity_node(pod: JsonObject) -> str:
    """The node that a pod has its node affinity to; empty if there is none."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _must_leave(spec: PodSpec, node: JsonObject) -> bool:
    """Whether a pod on a node that is not eligible is deleted: not for a NoSchedule taint alone."""
    taints = [t for t in node["spec"].get("taints") or () if t.get("effect") == "NoExecute"]
    lenient = {**node, "spec": {**node["spec"], "taints": taints}}
    return not daemons.wanted_on(spec, msgspec.convert(lenient, Node))


def _placement(node: JsonObject) -> tuple[Any, ...]:
    """The fields of a node that decide whether it is eligible."""
    return labels_of(node), node["spec"].get("taints") or [], node["spec"].get("unschedulable")


def _seniority(pod: PodInfo) -> tuple[bool, float]:
    return not pod.ready, parse_time(pod.created) or 0.0
