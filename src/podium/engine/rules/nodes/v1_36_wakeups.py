"""Which events wake pods that NodeUnschedulable or NodeDeclaredFeatures rejected.

Upstream: the queueing hints of nodeunschedulable and nodedeclaredfeatures, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod
from podium.objects.taints import tolerated

_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def became_schedulable(_waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node that takes pods came, or began to take pods."""
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def tolerates_unschedulable(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself tolerates unschedulable nodes now."""
    return new.uid == waiting.uid and tolerated(new.spec.tolerations, _UNSCHEDULABLE)


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
