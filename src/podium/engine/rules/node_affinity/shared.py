"""The nodeSelector and required node affinity of a pod, compiled and matched against nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rows.node_match import selects, selects_any
from podium.engine.rows.rows import Flags, K, Rows
from podium.objects.selectors.selectors import NodeTerm, Selector, from_map, node_terms

if TYPE_CHECKING:
    from podium.engine.state.pod_class import PodClass

Required = tuple[Selector | None, tuple[NodeTerm, ...] | None]


def required_node(cls: PodClass) -> Required:
    """The compiled nodeSelector and required terms; None where the pod has none."""
    return cls.once("required node", lambda: _required_node(cls))


def _required_node(cls: PodClass) -> Required:
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    selector = from_map(cls.spec.node_selector) if cls.spec.node_selector else None
    terms = node_terms(required) if required is not None else None
    return selector, (
        terms if terms is None or terms else (NodeTerm(Selector(nothing=True), None),)
    )


def matches_required_node(cls: PodClass, at: Rows[K]) -> Flags[K]:
    """Whether rows match the pod's nodeSelector and required node affinity."""
    selector, terms = required_node(cls)
    matched = at.flags(True) if selector is None else selects(at, selector)  # noqa: FBT003
    return matched if terms is None else matched & selects_any(at, terms)
