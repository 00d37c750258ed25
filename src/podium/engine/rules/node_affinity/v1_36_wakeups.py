"""Which nodes wake pods that NodeAffinity rejected.

Upstream: the queueing hints of nodeaffinity, Kubernetes v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelector, Pod
from podium.objects.selectors.selectors import from_map, matches_terms, node_terms


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
