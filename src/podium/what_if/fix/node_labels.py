"""Labels of a node that a pod's conditions ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.pod import Affinity, NodeSelectorTerm, PodAffinity
from podium.objects.kinds.registry import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
)
from podium.objects.selectors.requirements import SelectorError, int64, requirement
from podium.what_if.fix.claim_advice import volume_claims
from podium.what_if.fix.relaxations import required_node_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: Labels that say what or where a node is; they may be added where they are missing, never changed.
_FACTS: Final = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
)


def without_node_conditions(pod: Pod) -> Pod:
    """The pod without anything that looks at the labels of nodes, volumes included."""
    affinity = pod.spec.affinity or Affinity()
    node_affinity = affinity.node_affinity and replace(affinity.node_affinity, required=None)
    parts = {
        "pod_affinity": affinity.pod_affinity,
        "pod_anti_affinity": affinity.pod_anti_affinity,
    }
    soft: dict[str, PodAffinity | None] = {
        name: part and replace(part, required=None) for name, part in parts.items()
    }
    spec = replace(
        pod.spec,
        volumes=None,
        node_selector=None,
        affinity=Affinity(node_affinity, soft["pod_affinity"], soft["pod_anti_affinity"]),
        topology_spread_constraints=None,
    )
    return replace(pod, spec=spec)


class LabelConditions:
    """What a pod and its volumes ask of the labels of nodes."""

    def __init__(self, pod: Pod, objects: Objects) -> None:
        self.pod = pod
        self.terms = [*required_node_terms(pod), *_volume_terms(pod, objects)]
        self._nodes = objects.nodes
        self._values: dict[str, list[str]] = {}

    def values(self, key: str) -> list[str]:
        """The values that nodes have for a label."""
        found = self._values.get(key)
        if found is None:
            values = {node.labels[key] for node in self._nodes if key in node.labels}
            found = self._values[key] = sorted(values)
        return found


def label_changes(asked: LabelConditions, node: Node) -> Iterator[tuple[str, str | None]]:
    """Labels to set on the node, or to remove (None), that a condition of the pod asks for."""
    seen: set[tuple[str, str | None]] = set()
    for key, wanted in _asked_for(asked, node):
        if node.labels.get(key) == wanted or (key, wanted) in seen:
            continue
        if key in node.labels and key.startswith(_FACTS):
            continue
        seen.add((key, wanted))
        yield key, wanted


def _asked_for(asked: LabelConditions, node: Node) -> Iterator[tuple[str, str | None]]:
    pod = asked.pod
    yield from (pod.spec.node_selector or {}).items()
    for term in asked.terms:
        for expression in term.match_expressions or ():
            yield from _accepted(expression, node)
    for key in _topology_keys(pod):
        if key not in node.labels:
            yield from ((key, value) for value in (*asked.values(key), node.name))


def _volume_terms(pod: Pod, objects: Objects) -> Iterator[NodeSelectorTerm]:
    """The conditions of the volumes that the claims of the pod are bound to, or may be bound to."""
    wanted = set(volume_claims(pod))
    claims = [
        each
        for each in objects.of(PERSISTENT_VOLUME_CLAIM)
        if each.namespace == pod.namespace and each.name in wanted
    ]
    bound = {each.spec.volume_name for each in claims if each.spec.volume_name}
    classes = {each.spec.storage_class_name or "" for each in claims if not each.spec.volume_name}
    for volume in objects.of(PERSISTENT_VOLUME) if claims else ():
        free = volume.spec.claim_ref is None and volume.spec.storage_class_name in classes
        affinity = volume.spec.node_affinity
        if (volume.name in bound or free) and affinity is not None and affinity.required:
            yield from affinity.required.node_selector_terms or ()
    for storage_class in objects.of(STORAGE_CLASS) if classes else ():
        if storage_class.name in classes:
            for topology in storage_class.allowed_topologies or ():
                in_values = [
                    LabelSelectorRequirement(each.key, "In", each.values)
                    for each in topology.match_label_expressions or ()
                ]
                yield NodeSelectorTerm(match_expressions=in_values)


def _accepted(expression: LabelSelectorRequirement, node: Node) -> Iterator[tuple[str, str | None]]:
    """Values of the label that the expression accepts, where the node has another."""
    try:
        wanted = requirement(expression.key, expression.operator, expression.values)
    except SelectorError:
        return
    if wanted.accepts(node.labels.get(expression.key)):
        return
    match wanted.operator:
        case "In":
            yield from ((wanted.key, value) for value in wanted.values)
        case "Exists":
            yield wanted.key, "true"
        case "NotIn" | "DoesNotExist":
            yield wanted.key, None
        case "Gt" | "Lt":
            bound = int64(wanted.values[0])
            if bound is not None:
                yield wanted.key, str(bound + 1 if wanted.operator == "Gt" else bound - 1)


def _topology_keys(pod: Pod) -> list[str]:
    """The topology keys of what the pod requires of other pods."""
    affinity = pod.spec.affinity or Affinity()
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity)
    keys = [term.topology_key for part in parts for term in (part and part.required) or ()]
    keys += [
        each.topology_key
        for each in pod.spec.topology_spread_constraints or ()
        if each.when_unsatisfiable == "DoNotSchedule"
    ]
    return [key for key in dict.fromkeys(keys) if key]
