"""Plugins on the node alone: NodeUnschedulable, NodeName, NodeDeclaredFeatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, MissingFeatures
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import Activity, BitFilter, Scope
from podium.engine.rows.rows import Ints, K, Rows
from podium.engine.rules.nodes.shared import CordonFilter, NamedNodeFilter
from podium.engine.rules.plugins import always
from podium.engine.state.pod_class import once_per_form
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

UNSCHEDULABLE = Reason("node(s) were unschedulable", curable=False)
NODE_NAME_MISMATCH = Reason("node(s) didn't match the requested node name", curable=False)
MISSING_FEATURES = Reason("node(s) didn't match Pod's required features", curable=False)


class NodeUnschedulable(CordonFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes."""

    name = "NodeUnschedulable"
    reasons = (UNSCHEDULABLE,)

    def activity(self, pod: Incoming, view: View) -> Activity:  # noqa: ARG002
        """The plugin has no PreFilter, so it is never skipped."""
        return Activity.OWN_ROW


class NodeName(NamedNodeFilter):
    """A pod with `spec.nodeName` fits that node only."""

    name = "NodeName"
    reasons = (NODE_NAME_MISMATCH,)


class NodeDeclaredFeatures(BitFilter):
    """The node must declare every feature that the pod's specification requires."""

    name = "NodeDeclaredFeatures"
    reasons = (MISSING_FEATURES,)
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The features that the pod requires."""
        return needed_features(cls)

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods that require features."""
        return Scope.NODE if needed_features(cls) else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a required feature is not declared."""
        needed = needed_features(pod.cls)
        return at.fact(at.view.nodes.facts.features, lambda declared: int(not needed <= declared))

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The features that the node does not declare."""
        missing = needed_features(pod.cls) - at.view.nodes.facts.features.on(at.row)
        if missing:
            yield MissingFeatures(MISSING_FEATURES.text, tuple(sorted(missing)))


def seen_features(declared: Iterable[str]) -> frozenset[str]:
    """The declared features that kube-scheduler sees.

    It expects a sorted list, and misses names that are out of order.
    """
    seen, last = set(), ""
    for name in declared:
        if name > last:
            seen.add(name)
            last = name
    return frozenset(seen)


@once_per_form
def needed_features(cls: PodClass) -> frozenset[str]:
    """The node features that the pod's specification requires."""
    spec, needed = cls.spec, []
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = [rule for container in containers for rule in container.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        needed.append("UserNamespacesHostNetworkSupport")
    return frozenset(needed)


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


NODE_UNSCHEDULABLE: Final = PluginDeclaration(
    "NodeUnschedulable",
    "filter",
    "the node is not cordoned, or the pod tolerates that",
    filter=plain(NodeUnschedulable),
    events={
        "Node Add": became_schedulable,
        "Node UpdateNodeTaint": became_schedulable,
        "Pod UpdatePodToleration": tolerates_unschedulable,
    },
)

NODE_NAME: Final = PluginDeclaration(
    "NodeName",
    "filter",
    "the node is the one that the pod names, if it names one",
    filter=plain(NodeName),
    events={"Node Add": always},
)

NODE_DECLARED_FEATURES: Final = PluginDeclaration(
    "NodeDeclaredFeatures",
    "preFilter filter",
    "features that the node declares",
    filter=plain(NodeDeclaredFeatures),
    feature_gate="NodeDeclaredFeatures",
    pre_filter_error='error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
    events={
        "Node Add": features_changed,
        "Node UpdateNodeDeclaredFeature": features_changed,
        "Pod Update": required_features_changed,
    },
)
