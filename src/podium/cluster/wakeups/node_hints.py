"""What changes of nodes mean to the plugins that look at one node at a time.

Upstream: the queueing hints of nodeunschedulable, tainttoleration, nodeaffinity, nodeports,
noderesources and nodedeclaredfeatures, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import ContainerPort, NodeSelector, Pod
from podium.objects.quantity import milli, value
from podium.objects.resource_names import is_extended
from podium.objects.selectors.selectors import from_map, matches_terms, node_terms
from podium.objects.taints import tolerated

#: What a pod asks for, in the units of the scheduler: thousandths of a cpu, else whole units.
Requests = Callable[[Pod], Mapping[str, int]]

_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  a literal of the API, nothing is bound to it


def became_schedulable(_waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node that takes pods came, or began to take pods."""
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def tolerates_unschedulable(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself tolerates unschedulable nodes now."""
    return new.uid == waiting.uid and tolerated(new.spec.tolerations, _UNSCHEDULABLE)


def taints_tolerated(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came without taints that the pod does not tolerate, or lost them."""
    was_shut = old is None or _shut(waiting, old)
    return was_shut and not _shut(waiting, new)


def _shut(pod: Pod, node: Node) -> bool:
    hard = (taint for taint in node.spec.taints or () if taint.effect in _HARD_EFFECTS)
    return not all(tolerated(pod.spec.tolerations, taint) for taint in hard)


@dataclass(frozen=True, slots=True)
class NodeAffinityHint:
    """A node matches the pod's required affinity that did not; *added* is the profile's own."""

    added: NodeSelector | None = None

    def __call__(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        """Whether it does."""
        if self.added is not None and not _selected(self.added, new):
            return False
        return _wanted(waiting, new) and (old is None or not _wanted(waiting, old))


def _wanted(pod: Pod, node: Node) -> bool:
    if not from_map(pod.spec.node_selector).matches(node.labels):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return not affinity or affinity.required is None or _selected(affinity.required, node)


def _selected(selector: NodeSelector, node: Node) -> bool:
    return matches_terms(node_terms(selector), node.labels, {"metadata.name": node.name})


def holds_place(pod: Pod) -> bool:
    """Whether the pod counts on a node: it has one or is nominated to one."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def frees_ports(waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod went that held a host port which the waiting one wants."""
    if not holds_place(old):
        return False
    held = list(_host_ports(old))
    return any(_collide(mine, other) for mine in _host_ports(waiting) for other in held)


def _host_ports(pod: Pod) -> Iterator[tuple[str, str, int]]:
    init = (each for each in pod.spec.init_containers or () if each.restart_policy == "Always")
    for container in (*(pod.spec.containers or ()), *init):
        yield from (_host_port(port) for port in container.ports or () if port.host_port > 0)


def _host_port(port: ContainerPort) -> tuple[str, str, int]:
    return port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or _ANY_ADDRESS in (one[0], other[0]))


@dataclass(frozen=True, slots=True)
class ResourceHints:
    """Room was made, or may have been, for what the pod asks for."""

    requests: Requests

    def pod_gone(self, _waiting: Pod, old: Pod, _new: None) -> bool:
        """Any pod that took room went."""
        return holds_place(old)

    def scaled_down(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        """The pod itself asks for less, or an assigned one for less of what it asks for."""
        if new.uid == waiting.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = self.requests(old), self.requests(new)
        return any(
            amount and before.get(name, 0) > after.get(name, 0)
            for name, amount in self.requests(waiting).items()
        )

    def node_grew(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        """The pod fits on the node when empty, and the node is new or has more of its wants."""
        wants = {name: amount for name, amount in self.requests(waiting).items() if amount}
        room = {name: allocatable(new, name) for name in (*wants, "pods")}
        if room["pods"] < 1 or any(room[name] < amount for name, amount in wants.items()):
            return False
        return old is None or any(room[name] > allocatable(old, name) for name in room)

    def device_class(self, waiting: Pod, _old: object, _new: object) -> bool:
        """A class of devices may stand for an extended resource that the pod asks for."""
        return any(amount and is_extended(name) for name, amount in self.requests(waiting).items())


def allocatable(node: Node, name: str) -> int:
    """How much of a resource a node offers."""
    raw = (node.status.allocatable or {}).get(name, 0)
    return milli(raw) if name == "cpu" else value(raw)


def features_changed(_waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came or declares other features."""
    before = old and old.status.declared_features
    return old is None or (before or []) != (new.status.declared_features or [])


def required_features_changed(waiting: Pod, old: Pod, new: Pod) -> bool:
    """The pod itself needs other features of nodes than before."""
    return new.uid == waiting.uid and _required_features(old) != _required_features(new)


def _required_features(pod: Pod) -> tuple[bool, bool]:
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    rules = [rule for each in containers for rule in each.restart_policy_rules or ()]
    return (
        any(rule.action == "RestartAllContainers" for rule in rules),
        pod.spec.host_network and pod.spec.host_users is False,
    )
