"""Labels of a node that a pod's conditions ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.objects.kinds.pod import Affinity, PodAffinity
from podium.objects.selectors.requirements import SelectorError, int64, requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.objects.kinds.meta import LabelSelectorRequirement
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import NodeSelectorTerm, Pod

#: Labels that say what or where a node is; they may be added where they are missing, never changed.
_FACTS: Final = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
)


def without_node_conditions(pod: Pod) -> Pod:
    """The pod without anything that looks at the labels of nodes."""
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
        node_selector=None,
        affinity=Affinity(node_affinity, soft["pod_affinity"], soft["pod_anti_affinity"]),
        topology_spread_constraints=None,
    )
    return replace(pod, spec=spec)


def label_changes(pod: Pod, node: Node, nodes: Iterable[Node]) -> Iterator[tuple[str, str | None]]:
    """Labels to set on the node, or to remove (None), that a condition of the pod asks for."""
    seen: set[tuple[str, str | None]] = set()
    for key, wanted in _asked_for(pod, node, nodes):
        if node.labels.get(key) == wanted or (key, wanted) in seen:
            continue
        if key in node.labels and key.startswith(_FACTS):
            continue
        seen.add((key, wanted))
        yield key, wanted


def _asked_for(pod: Pod, node: Node, nodes: Iterable[Node]) -> Iterator[tuple[str, str | None]]:
    yield from (pod.spec.node_selector or {}).items()
    for term in _required_terms(pod):
        for expression in term.match_expressions or ():
            yield from _accepted(expression, node)
    missing = [key for key in _topology_keys(pod) if key not in node.labels]
    if missing:
        others = list(nodes)
        for key in missing:
            values = sorted({other.labels[key] for other in others if key in other.labels})
            yield from ((key, value) for value in (*values, node.name))


def _required_terms(pod: Pod) -> list[NodeSelectorTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return list((affinity and affinity.required and affinity.required.node_selector_terms) or ())


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
