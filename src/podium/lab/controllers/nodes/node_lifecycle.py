"""The lifecycle of nodes: registration, taints that follow from conditions, and pods left behind.

Upstream: pkg/controller/nodelifecycle and pkg/controller/podgc.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import condition
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.nodes import node_registration
from podium.objects.kinds.meta import JsonObject

_PREFIX: Final = "node.kubernetes.io/"
#: Condition, its value, and the taint that stands for it.
_CONDITIONS: Final = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
    ("PIDPressure", "True", "pid-pressure"),
)
_EVICTING: Final = ("not-ready", "unreachable")
_MANAGED: Final = frozenset(
    [
        *((f"{_PREFIX}{name}", "NoSchedule") for _, _, name in _CONDITIONS),
        *((f"{_PREFIX}{name}", "NoExecute") for name in _EVICTING),
        (f"{_PREFIX}unschedulable", "NoSchedule"),
    ]
)
#: How long pods of a node that is gone are left alone, in seconds.
_QUARANTINE: Final = 2.0


class Nodes(Controller):
    """Registers nodes that nobody described, and taints them."""

    name: ClassVar = "node-controller"
    hears_pods = True

    def hears(self) -> dict[str, Hearing]:
        """Of nodes."""
        return {"Node": self.hear_node}

    def hear_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A node came, changed or went."""
        node = new if new is not None else old
        assert node is not None
        name = node["metadata"]["name"]
        if new is None:
            self.add(name, after=_QUARANTINE)
        elif not node_registration.complete(new) or wished_taints(new, "") != _taints(new):
            self.add(name)

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod may be on a node that does not exist."""
        if new is None or not new.node or (old is not None and old.node and not new.leaving):
            return
        if self.cluster.get("Node", "", new.node) is None:
            self.add(new.node, after=_QUARANTINE)

    def sync(self, key: Any) -> None:
        """Complete and taint a node; delete the pods of one that is gone."""
        node = self.cluster.get("Node", "", key)
        if node is None:
            for pod in list(self.cluster.pods.on_node(key).values()):
                self.cluster.delete_pod(pod, grace=0)
            return
        at = self.cluster.timestamp()
        if not node_registration.complete(node):
            missing = node_registration.labels(node)
            if missing:
                self.cluster.change("Node", ("", key), lambda it: _label(it, missing))
            self.cluster.report(node, node_registration.status(node, at))
            node = self.cluster.get("Node", "", key) or node
        taints = wished_taints(node, at)
        if taints != _taints(node):
            self.cluster.change("Node", ("", key), lambda it: _taint(it, taints))


def wished_taints(node: JsonObject, at: str) -> list[JsonObject]:
    """The taints that a node should have: those of others, and those of its conditions."""
    due: list[tuple[str, str]] = []
    if node["spec"].get("unschedulable"):
        due.append((f"{_PREFIX}unschedulable", "NoSchedule"))
    for kind, value, name in _CONDITIONS:
        if condition(node, kind).get("status") == value:
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


def _taint(node: JsonObject, taints: list[JsonObject]) -> None:
    node["spec"]["taints"] = [dict(each) for each in taints]
    if not taints:
        del node["spec"]["taints"]


def _label(node: JsonObject, missing: dict[str, str]) -> None:
    node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), **missing}
