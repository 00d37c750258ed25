"""The node lifecycle controller: registration, taints of conditions, and pods without a node.

Registration sets the labels and the status that a kubelet sets. Only missing fields are filled in,
so a node that comes from a real cluster stays as it is.

Upstream: pkg/controller/nodelifecycle and pkg/controller/podgc.
"""

from __future__ import annotations

import zlib
from typing import ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed
from podium.lab.controllers.framework.object_fields import condition
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.objects.kinds.meta import JsonObject
from podium.releases import DEFAULT_RELEASE

KUBELET_VERSION: Final = f"{DEFAULT_RELEASE.name}.0-lab"
DEFAULT_CAPACITY: Final = {
    "cpu": "4",
    "memory": "16Gi",
    "pods": "110",
    "ephemeral-storage": "100Gi",
}
_HEALTHY_CONDITIONS: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_PREFIX: Final = "node.kubernetes.io/"
#: Condition type, its status, and the name of the taint that it causes.
_CONDITION_TAINTS: Final = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
    ("PIDPressure", "True", "pid-pressure"),
)
#: The taints that exist with the effect NoExecute, too.
_EVICTING: Final = ("not-ready", "unreachable")
_MANAGED: Final = frozenset(
    [
        *((f"{_PREFIX}{name}", "NoSchedule") for _, _, name in _CONDITION_TAINTS),
        *((f"{_PREFIX}{name}", "NoExecute") for name in _EVICTING),
        (f"{_PREFIX}unschedulable", "NoSchedule"),
    ]
)
#: Seconds until the pods of a node that is gone are deleted.
_QUARANTINE: Final = 2.0


def is_registered(node: JsonObject) -> bool:
    """Whether the node has allocatable resources and a Ready condition."""
    status = node.get("status") or {}
    return bool(status.get("allocatable")) and bool(condition(node, "Ready"))


def registered_status(node: JsonObject, at: str) -> JsonObject:
    """The status of the node with all missing fields set; new conditions begin at *at*."""
    written = node.get("status") or {}
    name = node["metadata"]["name"]
    resources = written.get("allocatable") or written.get("capacity") or DEFAULT_CAPACITY
    if "pods" not in resources:
        resources = {**resources, "pods": DEFAULT_CAPACITY["pods"]}
    found: JsonObject = {
        **written,
        "capacity": written.get("capacity") or dict(resources),
        "allocatable": written.get("allocatable") or dict(resources),
    }
    if not condition(node, "Ready"):
        found["conditions"] = [*(written.get("conditions") or ()), *_conditions(node, at)]
    found.setdefault("addresses", [
        {"type": "InternalIP", "address": node_address(name)},
        {"type": "Hostname", "address": name},
    ])  # fmt: skip
    found.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    found.setdefault("nodeInfo", _node_info(name))
    return found


def followed_capacity(node: JsonObject, before: JsonObject | None = None) -> JsonObject | None:
    """The allocatable resources after a change of the capacity; None if they stay.

    Extended resources of the capacity become allocatable, and those that *before* had in its
    capacity and that are gone are allocatable no longer. A kubelet does the same.
    """
    status = node.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    had = ((before or {}).get("status") or {}).get("capacity") or {}
    added = {name: capacity[name] for name in capacity if "/" in name and name not in allocatable}
    gone = {name for name in had if "/" in name and name not in capacity and name in allocatable}
    if not added and not gone:
        return None
    kept = {name: amount for name, amount in allocatable.items() if name not in gone}
    return {**kept, **added}


def default_labels(node: JsonObject) -> dict[str, str]:
    """The labels that a kubelet sets, without those that the node has."""
    present = node["metadata"].get("labels") or {}
    defaults = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node["metadata"]["name"],
        "kubernetes.io/os": "linux",
    }
    return {name: text for name, text in defaults.items() if name not in present}


def node_address(name: str) -> str:
    """The internal IP of a node, computed from its name."""
    number = zlib.crc32(name.encode()) & 0x3FFFFF
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


def _conditions(node: JsonObject, at: str) -> list[JsonObject]:
    found = [
        _condition(kind, "False", reason, message, at)
        for kind, reason, message in _HEALTHY_CONDITIONS
        if not condition(node, kind)
    ]
    return [
        *found,
        _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", at),
    ]


def _condition(kind: str, value: str, reason: str, message: str, at: str) -> JsonObject:
    return {
        "type": kind,
        "status": value,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def _node_info(name: str) -> JsonObject:
    number = f"{zlib.crc32(name.encode()):032x}"
    return {
        "machineID": number,
        "systemUUID": number,
        "bootID": number,
        "kernelVersion": "6.12.0",
        "osImage": "Podium lab",
        "containerRuntimeVersion": "lab://1",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": KUBELET_VERSION,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


class NodeLifecycleController(Controller[str]):
    """Registers nodes, taints them by their conditions, and deletes pods of nodes that are gone.

    Its keys are names of nodes.
    """

    name: ClassVar = "node-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch nodes and pods."""
        super().__init__(cluster)
        #: Allocatable resources that follow from a change of the capacity, by node.
        self._allocatable: dict[str, JsonObject] = {}
        self.watch("Node", self._on_node)
        self.watch_pods(self._on_pod, listed=self._on_listed_pods)

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        name = changed(old, new)["metadata"]["name"]
        if new is None:
            self._allocatable.pop(name, None)
            self.enqueue(name, after=_QUARANTINE)
        elif is_registered(new) and (followed := followed_capacity(new, old)) is not None:
            self._allocatable[name] = followed
            self.enqueue(name)
        elif not is_registered(new) or desired_taints(new, "") != _taints(new):
            self.enqueue(name)

    def _on_listed_pods(self, pods: LabPods) -> None:
        for name in pods.by_node:
            if self.cluster.get("Node", "", name) is None:
                self.enqueue(name, after=_QUARANTINE)

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is None or not new.node or (old is not None and old.node and not new.terminating):
            return
        if self.cluster.get("Node", "", new.node) is None:
            self.enqueue(new.node, after=_QUARANTINE)

    def sync(self, key: str) -> None:
        """Register and taint a node; delete the pods of a node that does not exist."""
        node = self.cluster.get("Node", "", key)
        if node is None:
            for pod in list(self.cluster.pods.on_node(key).values()):
                self.cluster.delete_pod(pod, grace=0)
            return
        at = self.cluster.timestamp()
        if not is_registered(node):
            missing = default_labels(node)
            if missing:
                self.cluster.update("Node", ("", key), lambda it: _set_labels(it, missing))
            self.cluster.update_status(node, registered_status(node, at))
            node = self.cluster.get("Node", "", key) or node
        followed = self._allocatable.pop(key, None)
        if followed is not None:
            self.cluster.update_status(node, {**node["status"], "allocatable": followed})
            node = self.cluster.get("Node", "", key) or node
        taints = desired_taints(node, at)
        if taints != _taints(node):
            self.cluster.update("Node", ("", key), lambda it: _set_taints(it, taints))


def desired_taints(node: JsonObject, at: str) -> list[JsonObject]:
    """The taints of a node that no condition causes, and those of its present conditions.

    New taints are added at the time *at*.
    """
    due: list[tuple[str, str]] = []
    if node["spec"].get("unschedulable"):
        due.append((f"{_PREFIX}unschedulable", "NoSchedule"))
    for kind, status, name in _CONDITION_TAINTS:
        if condition(node, kind).get("status") == status:
            due.append((f"{_PREFIX}{name}", "NoSchedule"))
            if name in _EVICTING:
                due.append((f"{_PREFIX}{name}", "NoExecute"))
    kept = []
    for taint in _taints(node):
        identity = (taint.get("key", ""), taint.get("effect", ""))
        if identity not in _MANAGED or identity in due:
            kept.append(taint)
            if identity in due:
                due.remove(identity)
    added = [{"key": key, "effect": effect, "timeAdded": at} for key, effect in due]
    return [*kept, *added]


def _taints(node: JsonObject) -> list[JsonObject]:
    return node["spec"].get("taints") or []


def _set_taints(node: JsonObject, taints: list[JsonObject]) -> None:
    node["spec"]["taints"] = [dict(each) for each in taints]
    if not taints:
        del node["spec"]["taints"]


def _set_labels(node: JsonObject, missing: dict[str, str]) -> None:
    node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), **missing}
