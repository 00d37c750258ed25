"""Label, node, field and topology selectors, built from what objects say.

Each builder has its own rule for absent, empty and invalid input, and the rules differ on purpose:

| built from | absent | empty | invalid |
|---|---|---|---|
| a plain map (`from_map`) | everything | everything | everything |
| a `LabelSelector` | nothing | everything | `SelectorError` |
| node requirements | nothing | nothing | `SelectorError` |
| node selector terms | no terms | no terms | the term is dropped |
| topology terms | everything | everything | the term is dropped |

Upstream: apimachinery/pkg/apis/meta/v1 and pkg/apis/core/v1/helper, Kubernetes v1.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelector, NodeSelectorTerm
from podium.objects.kinds.storage import TopologySelectorTerm
from podium.objects.names import (
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
    quoted,
)
from podium.objects.selectors.requirements import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    FieldSelector,
    Requirement,
    Selector,
    SelectorError,
    conjunction,
    requirement,
)
from podium.objects.selectors.text import parse_field_selector, parse_selector

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
    "FieldSelector",
    "NodeTerm",
    "Requirement",
    "Selector",
    "SelectorError",
    "from_field_requirements",
    "from_label_selector",
    "from_map",
    "from_map_literal",
    "from_node_requirements",
    "is_qualified_name",
    "label_key_reasons",
    "label_value_reasons",
    "matches_terms",
    "node_term_fault",
    "node_terms",
    "parse_field_selector",
    "parse_selector",
    "requirement",
    "topology_terms",
]

_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS = _LABEL_OPERATORS | {"Gt", "Lt"}


def from_map(labels: Mapping[str, str] | None) -> Selector:
    """Every pair must be there. One invalid pair and the selector matches everything."""
    try:
        return conjunction([requirement(key, "=", [val]) for key, val in (labels or {}).items()])
    except SelectorError:
        return EVERYTHING


def from_map_literal(labels: Mapping[str, str] | None) -> Selector:
    """Every pair must be there, invalid ones too: how services and controllers find their pods."""
    return conjunction([Requirement(key, "In", (val,)) for key, val in (labels or {}).items()])


def from_label_selector(selector: LabelSelector | None, kind: str = "pod selector") -> Selector:
    """Labels and expressions together. Absent selects nothing, empty everything.

    *kind* is what a refusal calls it: generations differ.
    """
    if selector is None:
        return NOTHING
    pairs = sorted((selector.match_labels or {}).items())
    wanted = [requirement(key, "=", [value]) for key, value in pairs]
    wanted += _expressions(selector.match_expressions, _LABEL_OPERATORS, kind)
    return conjunction(wanted)


def from_node_requirements(expressions: Sequence[LabelSelectorRequirement] | None) -> Selector:
    """The matchExpressions of one node selector term; none select nothing."""
    if not expressions:
        return NOTHING
    return conjunction(_expressions(expressions, _NODE_OPERATORS, "node selector"))


def _expressions(
    expressions: Iterable[LabelSelectorRequirement] | None, legal: frozenset[str], kind: str
) -> list[Requirement]:
    wanted = []
    for expression in expressions or ():
        if expression.operator not in legal:
            raise SelectorError(f"{quoted(expression.operator)} is not a valid {kind} operator")
        wanted.append(requirement(expression.key, expression.operator, expression.values))
    return wanted


def from_field_requirements(
    expressions: Sequence[LabelSelectorRequirement] | None,
) -> FieldSelector:
    """The matchFields of one node selector term; none select nothing."""
    if not expressions:
        return FieldSelector(nothing=True)
    return FieldSelector(tuple(map(_field_requirement, expressions)))


def _field_requirement(expression: LabelSelectorRequirement) -> FieldRequirement:
    operator, values = expression.operator, expression.values or []
    if operator not in {"In", "NotIn"}:
        raise SelectorError(f"{quoted(operator)} is not a valid node field selector operator")
    if len(values) != 1:
        raise SelectorError(
            f"unexpected number of value ({len(values)}) "
            f"for node field selector operator {quoted(operator)}"
        )
    return FieldRequirement(expression.key, operator == "In", values[0])


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector, ready to match; an absent half places no condition."""

    labels: Selector | None
    fields: FieldSelector | None

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Whether a node with these *labels* and *fields* satisfies both halves."""
        if self.labels is not None and not self.labels.matches(labels):
            return False
        return self.fields is None or self.fields.matches(fields)


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms that can match at all: empty and invalid ones match no node and are left out."""
    terms = []
    for term in selector.node_selector_terms or ():
        try:
            built = _node_term(term)
        except SelectorError:
            continue
        if built.labels is not None or built.fields is not None:
            terms.append(built)
    return tuple(terms)


def node_term_fault(term: NodeSelectorTerm) -> str:
    """Why a term is not valid, in the words of Kubernetes; empty if it is."""
    try:
        _node_term(term)
    except SelectorError as error:
        return str(error)
    return ""


def _node_term(term: NodeSelectorTerm) -> NodeTerm:
    labels, fields = term.match_expressions, term.match_fields
    return NodeTerm(
        from_node_requirements(labels) if labels else None,
        from_field_requirements(fields) if fields else None,
    )


def matches_terms(
    terms: Iterable[NodeTerm], labels: Mapping[str, str], fields: Mapping[str, str]
) -> bool:
    """Whether any term matches; no terms match no node."""
    return any(term.matches(labels, fields) for term in terms)


def topology_terms(terms: Sequence[TopologySelectorTerm] | None) -> tuple[Selector, ...] | None:
    """The allowedTopologies of a storage class, any of which must match; `None`: no condition."""
    if not terms:
        return None
    selectors = []
    for term in terms:
        expressions = term.match_label_expressions or ()
        try:
            wanted = [requirement(each.key, "In", each.values) for each in expressions]
        except SelectorError:
            continue
        if wanted:
            selectors.append(conjunction(wanted))
    return tuple(selectors)
