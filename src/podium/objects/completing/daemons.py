"""Which nodes the pods of a daemon set go to, and what its controller adds to them.

Upstream: pkg/controller/daemon, Kubernetes v1.13 with ScheduleDaemonSetPods: the controller picks
the nodes, the scheduler places each pod, which can go to one node only.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodSpec,
    Toleration,
)
from podium.objects.selectors.selectors import from_map, matches_terms, node_terms
from podium.objects.taints import tolerated

_TAINTS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TAINTS = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)
_HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def tolerating(spec: PodSpec) -> PodSpec:
    """The template with the tolerations that every daemon has."""
    tolerations = list(spec.tolerations or ())
    for key, effect in _TAINTS + (_HOST_NETWORK_TAINTS if spec.host_network else ()):
        toleration = Toleration(key=key, operator="Exists", effect=effect)
        if toleration not in tolerations:
            tolerations.append(toleration)
    return replace(spec, tolerations=tolerations)


def wanted_on(spec: PodSpec, node: Node) -> bool:
    """Whether the controller makes a pod for *node*; it does not look at resources and ports."""
    if spec.node_name and spec.node_name != node.name:
        return False
    if not from_map(spec.node_selector).matches(node.labels):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity and affinity.required:
        fields = {"metadata.name": node.name}
        if not matches_terms(node_terms(affinity.required), node.labels, fields):
            return False
    return all(
        tolerated(spec.tolerations, taint)
        for taint in node.spec.taints or ()
        if taint.effect in _HARD_EFFECTS
    )


def bound_to(spec: PodSpec, node: Node) -> PodSpec:
    """The pod for *node*: the name of the node replaces the required node affinity."""
    name = LabelSelectorRequirement(key="metadata.name", operator="In", values=[node.name])
    only = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
    affinity = spec.affinity or Affinity()
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=only)
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))
