"""The nodeSelector and required node affinity of a pod, compiled and matched against nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import Cause, Expression, NoTerms
from podium.engine.rows.node_match import label_keys, selects, selects_any
from podium.engine.rows.rows import NAME_FIELD, Flags, K, OneRow, Rows
from podium.engine.state.pod_class import once_per_form
from podium.objects.kinds.pod import NodeSelector
from podium.objects.selectors.selectors import (
    NodeTerm,
    Selector,
    from_map,
    node_term_fault,
    node_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import ManyRows
    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.verdicts import Reason
    from podium.objects.selectors.selectors import FieldSelector

#: Where required terms stand in a pod.
REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

Required = tuple[Selector | None, tuple[NodeTerm, ...] | None]


@once_per_form
def required_node(cls: PodClass) -> Required:
    """The compiled nodeSelector and required terms; None where the pod has none."""
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    selector = from_map(cls.spec.node_selector) if cls.spec.node_selector else None
    terms = node_terms(required) if required is not None else None
    return selector, (
        terms if terms is None or terms else (NodeTerm(Selector(nothing=True), None),)
    )


def unmet_requirements(reason: Reason, cls: PodClass, at: OneRow, memo: Memo) -> Iterator[Cause]:
    """What the node does not meet of the pod's nodeSelector and required node affinity."""
    selector, terms = required_node(cls)
    if selector is not None:
        yield from _unmet_labels(reason, "nodeSelector", selector, at)
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    if terms is not None and affinity and affinity.required is not None:
        yield from unmet_terms(reason, REQUIRED_TERMS, affinity.required, at, memo)


def required_keys(
    cls: PodClass, at: ManyRows, added: NodeSelector | None = None
) -> list[Hashable] | None:
    """The values of the labels that requirements ask for, of each row; None with field selectors.

    *added* are terms of the profile.
    """
    selector, terms = required_node(cls)
    chosen = [*(terms or ()), *(node_terms(added) if added is not None else ())]
    if any(term.fields is not None for term in chosen):
        return None
    selectors = [selector, *(term.labels for term in chosen)]
    asked = (each.key for one in selectors if one is not None for each in one.requirements)
    return label_keys(dict.fromkeys(asked), at)


def unmet_terms(
    reason: Reason,
    where: str,
    wanted: NodeSelector,
    at: OneRow,
    memo: Memo,
    *,
    fields: Callable[[FieldSelector], bool] | None = None,
) -> Iterator[Cause]:
    """What the node does not meet of each term, if it meets no term whole.

    `fields` says whether the fields of a term match, where that is not up to the node's name.
    """
    terms = memo.get((where, id(wanted)))
    if terms is None:
        # Compiled one by one: terms that cannot match are left out of a compiled list.
        listed = wanted.node_selector_terms or ()
        terms = [next(iter(node_terms(NodeSelector([term]))), None) for term in listed]
        memo[where, id(wanted)] = terms
    found: list[Cause] = []
    for index, term in enumerate(terms):
        place = f"{where}[{index}]"
        failed = list(_unmet_term(reason, place, term, at, fields))
        if term is None and _asks(wanted, index):
            fault = node_term_fault((wanted.node_selector_terms or ())[index])
            failed = [NoTerms(reason.text, place, invalid=True, why=fault)]
        if not failed:
            return
        found += failed
    yield from found or [NoTerms(reason.text, where)]


def _asks(wanted: NodeSelector, index: int) -> bool:
    """Whether a term that cannot match says anything, so that it is not valid."""
    term = (wanted.node_selector_terms or ())[index]
    return bool(term.match_expressions or term.match_fields)


def _unmet_term(
    reason: Reason,
    where: str,
    term: NodeTerm | None,
    at: OneRow,
    fields: Callable[[FieldSelector], bool] | None,
) -> Iterator[Cause]:
    if term is None:
        yield NoTerms(reason.text, where)
        return
    if term.labels is not None:
        yield from _unmet_labels(reason, where, term.labels, at)
    if term.fields is None or (fields is not None and fields(term.fields)):
        return
    for each in term.fields.requirements:
        value = at.name if each.field == NAME_FIELD and fields is None else ""
        if not each.accepts(value):
            operator = "In" if each.equal else "NotIn"
            yield Expression(
                reason.text, where, each.field, operator, (each.value,), value, field=True
            )


def _unmet_labels(reason: Reason, where: str, selector: Selector, at: OneRow) -> Iterator[Cause]:
    if selector.nothing:
        yield NoTerms(reason.text, where)
    labels = at.node_labels
    for each in selector.requirements:
        value = labels.get(each.key)
        if not each.accepts(value):
            yield Expression(reason.text, where, each.key, each.operator, each.values, value)


def matches_required_node(cls: PodClass, at: Rows[K]) -> Flags[K]:
    """Whether rows match the pod's nodeSelector and required node affinity."""
    selector, terms = required_node(cls)
    matched = at.flags(True) if selector is None else selects(at, selector)  # noqa: FBT003
    return matched if terms is None else matched & selects_any(at, terms)
