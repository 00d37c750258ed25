"""Pod affinity terms, compiled.

A term without namespaces means the namespace of the pod that declares it. A selector that cannot
be compiled is kept as an error: which rule fails because of it, and how, differs from rule to rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from podium.engine.state.pod_class import once_per_class
from podium.engine.state.tallies import PodTerm
from podium.objects.field_errors import together
from podium.objects.selectors.faults import label_selector_fault
from podium.objects.selectors.selectors import NOTHING, SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.pod import PodAffinity, PodAffinityTerm

REQUIRED_AFFINITY = "required affinity"
REQUIRED_ANTI_AFFINITY = "required anti-affinity"
PREFERRED_AFFINITY = "preferred affinity"
PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"
#: What each list is called in a refusal.
_LISTS = {
    REQUIRED_AFFINITY: "requiredAffinityTerms",
    REQUIRED_ANTI_AFFINITY: "requiredAntiAffinityTerms",
    PREFERRED_AFFINITY: "preferredAffinityTerms",
    PREFERRED_ANTI_AFFINITY: "preferredAntiAffinityTerms",
}


def compiled(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """A term as declared by a pod of this namespace."""
    namespaces = frozenset(term.namespaces or (namespace,))
    try:
        return PodTerm(namespaces, from_label_selector(term.label_selector), term.topology_key)
    except SelectorError as error:
        return PodTerm(namespaces, NOTHING, term.topology_key, str(error))


def compiled_with_namespaces(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """The same, where namespaces may also be selected by their labels."""
    named: Sequence[str] = term.namespaces or ()
    if not named and term.namespace_selector is None:
        named = (namespace,)
    try:
        return PodTerm(
            frozenset(named),
            from_label_selector(term.label_selector),
            term.topology_key,
            namespace_selector=from_label_selector(term.namespace_selector),
        )
    except SelectorError:
        fault = label_selector_fault(term.label_selector)
        fault = fault or label_selector_fault(term.namespace_selector)
        return PodTerm(frozenset(named), NOTHING, term.topology_key, fault)


def required(affinity: PodAffinity | None, namespace: str) -> tuple[PodTerm, ...]:
    """The required terms."""
    return tuple(compiled(term, namespace) for term in (affinity and affinity.required) or ())


def preferred(affinity: PodAffinity | None, namespace: str) -> tuple[tuple[int, PodTerm], ...]:
    """The preferred terms with their weights."""
    return tuple(
        (weighted.weight, compiled(weighted.pod_affinity_term, namespace))
        for weighted in (affinity and affinity.preferred) or ()
    )


Compile = Callable[["PodAffinityTerm", str], PodTerm]
#: Terms with their weights, by kind.
Terms = dict[str, list[tuple[int, PodTerm]]]


def carried_terms(terms: Terms, *, drop_invalid: bool) -> Iterable[tuple[str, int, PodTerm]]:
    """Every one of the terms that a pod brings to its node: kind, weight, term.

    With `drop_invalid` one term that cannot be compiled takes the others of its list with it.
    """
    for kind, weighted in terms.items():
        if drop_invalid and any(term.error for _, term in weighted):
            continue
        yield from ((kind, weight, term) for weight, term in weighted)


@once_per_class
def declared_terms(cls: PodClass) -> Terms:
    """The terms that pods of a class declare. Namespaces may be selected by their labels."""
    return compiled_terms(cls, compiled_with_namespaces) if cls.has_pod_affinity else {}


def compiled_terms(cls: PodClass, compile_term: Compile) -> Terms:
    """The terms that pods of a class declare; kinds without a term are left out."""
    return {
        kind: [(weight, compile_term(term, cls.namespace)) for weight, term in weighted]
        for kind, weighted in _lists(cls)
        if weighted
    }


def terms_fault(cls: PodClass) -> str:
    """What is wrong with the terms that a pod of this class declares: one fault for each list."""
    return together(_list_faults(cls)) if cls.has_pod_affinity else ""


def _list_faults(cls: PodClass) -> Iterable[str]:
    for kind, weighted in declared_terms(cls).items():
        if fault := next((term.error for _, term in weighted if term.error), ""):
            yield f"{_LISTS[kind]}: {fault}"


def _lists(cls: PodClass) -> Iterator[tuple[str, list[tuple[int, PodAffinityTerm]]]]:
    """The pod's terms as it declares them, list by list."""
    if cls.spec.affinity is None:
        return
    affinity, anti_affinity = cls.affinity()
    for kind, part in ((REQUIRED_AFFINITY, affinity), (REQUIRED_ANTI_AFFINITY, anti_affinity)):
        yield kind, [(1, term) for term in (part and part.required) or ()]
    for kind, part in ((PREFERRED_AFFINITY, affinity), (PREFERRED_ANTI_AFFINITY, anti_affinity)):
        yield kind, [(w.weight, w.pod_affinity_term) for w in (part and part.preferred) or ()]
