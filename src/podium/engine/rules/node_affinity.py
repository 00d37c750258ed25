"""nodeSelector and node affinity: the plugin NodeAffinity, and the rules of v1.13.

Required terms that all name nodes (matchFields) restrict the search of the plugin to those nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, Expression, NoTerms, ScoreNumber
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginDeclaration,
    PredicateDeclaration,
    PriorityDeclaration,
    arguments_record,
    plain,
)
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    BitFilter,
    Everywhere,
    OnlyNodes,
    Refused,
    Scope,
    Watched,
)
from podium.engine.rows.node_match import label_keys, selects, selects_any
from podium.engine.rows.rows import NAME_FIELD, Flags, Ints, K, ManyRows, OneRow, Rows, as_int
from podium.engine.rules.plugins import MAX_SCORE
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.rules.scaled_score import ScaledScore
from podium.engine.state.pod_class import once_per_form
from podium.engine.state.verdicts import Reason
from podium.objects.field_errors import child
from podium.objects.go_types import INT32, STRING, Slice, named, record
from podium.objects.kinds import pod as objects
from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelector, NodeSelectorTerm, Pod, PreferredSchedulingTerm
from podium.objects.selectors.faults import node_term_faults, preferences_fault
from podium.objects.selectors.selectors import (
    NodeTerm,
    Selector,
    SelectorError,
    from_field_requirements,
    from_map,
    from_node_requirements,
    matches_terms,
    node_term_fault,
    node_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
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

    `where` names the terms in the memo. `fields` says whether the fields of a term match, where
    that is not up to the node's name.
    """
    terms = memo.get(where)
    if terms is None:
        # Compiled one by one: terms that cannot match are left out of a compiled list.
        listed = wanted.node_selector_terms or ()
        terms = [next(iter(node_terms(NodeSelector([term]))), None) for term in listed]
        memo[where] = terms
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


NODE_AFFINITY_MISMATCH = Reason("node(s) didn't match Pod's node affinity/selector", curable=False)
ENFORCED_AFFINITY_MISMATCH = Reason(
    "node(s) didn't match scheduler-enforced node affinity", curable=False
)
#: Where the terms of the profile stand in its configuration.
ADDED_TERMS = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
CONFLICTING_TERMS = "pod affinity terms conflict"


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Node affinity that every pod gets on top of its own."""

    added_affinity: objects.NodeAffinity | None = None


def _check(found: NodeAffinityArgs, path: str, _: FeatureGates) -> Errors:
    affinity, where = found.added_affinity, child(path, "addedAffinity")
    if affinity is None:
        return
    if affinity.required is not None:
        here = f"{where}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms or ()):
            yield from node_term_faults(term, f"{here}[{index}]")
    here = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred or ()):
        # Terms of weight 0 are not checked.
        if preferred.weight:
            yield from node_term_faults(preferred.preference, f"{here}[{index}]")


_REQUIREMENT = record(
    "v1.NodeSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.NodeSelectorOperator"),
    values=Slice(STRING, list),
)
_TERM = record(
    "v1.NodeSelectorTerm",
    NodeSelectorTerm,
    match_expressions=Slice(_REQUIREMENT, list),
    match_fields=Slice(_REQUIREMENT, list),
)
_SELECTOR = record("v1.NodeSelector", NodeSelector, node_selector_terms=Slice(_TERM, list))
_PREFERRED = record(
    "v1.PreferredSchedulingTerm", PreferredSchedulingTerm, weight=INT32, preference=_TERM
)
_AFFINITY = record(
    "v1.NodeAffinity",
    objects.NodeAffinity,
    required=("requiredDuringSchedulingIgnoredDuringExecution", _SELECTOR),
    preferred=("preferredDuringSchedulingIgnoredDuringExecution", Slice(_PREFERRED, list)),
)
NODE_AFFINITY_ARGUMENTS: Final = Arguments(
    arguments_record(NodeAffinityArgs, added_affinity=_AFFINITY), _check
)


class NodeAffinity(BitFilter):
    """The node must match the pod's nodeSelector and required terms, and those of the profile."""

    name = "NodeAffinity"
    reasons = (ENFORCED_AFFINITY_MISMATCH, NODE_AFFINITY_MISMATCH)
    keyed_by_form = True

    def __init__(self, added: objects.NodeAffinity | None = None) -> None:
        required = added.required if added is not None else None
        #: As it is written in the profile.
        self.added_required = required
        self.enforced = node_terms(required) if required is not None else None

    def row_key(self, cls: PodClass) -> Hashable:
        """The selector and the required terms, compiled."""
        return required_node(cls)

    def scope(self, cls: PodClass) -> Scope:
        """The node, if the pod or the profile requires anything of it."""
        if self.enforced is None and not any(part is not None for part in required_node(cls)):
            return Scope.NONE
        return Scope.NODE

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped if neither the pod nor the profile requires anything."""
        affinity = pod.cls.spec.affinity and pod.cls.spec.affinity.node_affinity
        required = affinity.required if affinity else None
        selector = pod.cls.spec.node_selector
        nothing = self.enforced is None and required is None and selector is None
        return Activity.SKIPPED if nothing else Activity.OWN_ROW

    def may_refuse(self, cls: PodClass) -> bool:
        """Required terms that name nodes may leave only these nodes."""
        affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
        required = affinity.required if affinity else None
        terms = (required.node_selector_terms if required is not None else None) or ()
        return any(term.match_fields for term in terms)

    def pre_filter(self, pod: Incoming, view: View) -> Refused | OnlyNodes | None:
        """The only nodes that can match, if every required term names nodes."""
        affinity = pod.cls.spec.affinity and pod.cls.spec.affinity.node_affinity
        terms = (
            affinity.required.node_selector_terms if affinity and affinity.required else None
        ) or ()
        union: set[str] = set()
        for term in terms:
            named: frozenset[str] | None = None
            for field in term.match_fields or ():
                if field.key == NAME_FIELD and field.operator == "In":
                    values = frozenset(field.values or ())
                    named = values if named is None else named & values
            if named is None:
                return None
            union |= named
        if terms and not union:
            return Refused(self.name, CONFLICTING_TERMS)
        return OnlyNodes(frozenset(union)) if terms else None

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the profile's terms do not match, else 2 where the pod's do not."""
        wrong = (matches_required_node(pod.cls, at) ^ True) * 2
        if self.enforced is None:
            return wrong
        enforced = selects_any(at, self.enforced)
        return at.where(enforced, wrong, 1)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The expressions that the node does not meet, the profile's first."""
        if self.added_required is not None:
            yield from unmet_terms(
                ENFORCED_AFFINITY_MISMATCH, ADDED_TERMS, self.added_required, at, memo
            )
        yield from unmet_requirements(NODE_AFFINITY_MISMATCH, pod.cls, at, memo)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable] | None:
        """The values of the labels that the pod and the profile ask for."""
        return required_keys(pod.cls, at, self.added_required)


class NodeAffinityScore(ScaledScore):
    """The sum of the weights of the preferred terms a node matches, the pod's and the profile's."""

    name = "NodeAffinity"
    highest = MAX_SCORE
    formula = "the weights of the preferred terms that match, scaled so that the highest sum is 100"

    def __init__(self, added: objects.NodeAffinity | None = None) -> None:
        self.added = _compiled(added.preferred if added is not None else None)
        self.has_added = bool(added is not None and added.preferred)

    def pre_score(self, pod: Incoming, view: View) -> str:
        """The error of a preferred term that cannot be compiled."""
        affinity = pod.cls.spec.affinity and pod.cls.spec.affinity.node_affinity
        return preferences_fault(affinity.preferred) if affinity and affinity.preferred else ""

    def watched(self, cls: PodClass) -> Watched:
        """Preferences of the pod, and of the profile."""
        return Watched.NOTHING

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped without preferences of the pod or the profile; 0 if none of them counts."""
        own = self._own(pod.cls)
        if own is None and not self.has_added:
            return SKIPPED
        return Everywhere(0) if not own and not self.added else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum of the weights of the terms that match."""
        total = at.full(0)
        for weight, term in (*(self._own(pod.cls) or ()), *self.added):
            if term is None:
                fault = self.pre_score(pod, at.view)
                raise AttemptError(
                    f'running Score plugins: plugin "{self.name}" failed with: {fault}'
                )
            total = total + at.where(selects_any(at, (term,)), weight, 0)
        return total

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The weights of the terms that the node matches, the pod's and the profile's."""
        for index, (weight, term) in enumerate((*(self._own(pod.cls) or ()), *self.added)):
            if term is not None and as_int(selects_any(at, (term,))):
                yield ScoreNumber(f"preferred term {index} ({term.labels or ''})", weight)

    def _own(self, cls: PodClass) -> Preferences | None:
        return None if cls.spec.affinity is None else _preferences(cls)


@once_per_form
def _preferences(cls: PodClass) -> Preferences | None:
    """Those of the pod; None if it states none."""
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    preferred = affinity.preferred if affinity else None
    return None if preferred is None else _compiled(preferred)


Preferences = tuple[tuple[int, "NodeTerm | None"], ...]


def _compiled(preferred: list[objects.PreferredSchedulingTerm] | None) -> Preferences:
    """Weight and term of each preference that counts; None for a term that cannot be compiled."""
    terms: list[tuple[int, NodeTerm | None]] = []
    for each in preferred or ():
        labels, fields = each.preference.match_expressions, each.preference.match_fields
        if not each.weight or not (labels or fields):
            continue
        try:
            term = NodeTerm(
                from_node_requirements(labels) if labels else None,
                from_field_requirements(fields) if fields else None,
            )
        except SelectorError:
            terms.append((each.weight, None))
        else:
            terms.append((each.weight, term))
    return tuple(terms)


def _events(context: EventContext) -> Events:
    """The added affinity counts if it is the same in all profiles."""
    added = [rule.added_required for rule in context.filters if isinstance(rule, NodeAffinity)]
    same = bool(added) and all(each == added[0] for each in added)
    hint = NodeAffinityHint(added[0] if same else None)
    return {"Node Add": hint, "Node UpdateNodeLabel": hint}


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


NODE_AFFINITY: Final = PluginDeclaration(
    "NodeAffinity",
    "preFilter filter preScore score",
    "node selectors and node affinity",
    filter=lambda found, _: NodeAffinity(found.added_affinity),
    score=lambda found, _: NodeAffinityScore(found.added_affinity),
    arguments=NODE_AFFINITY_ARGUMENTS,
    weight=2,
    events=_events,
)


NODE_SELECTOR_MISMATCH = Reason("node(s) didn't match node selector", curable=False)


class MatchNodeSelector(BitFilter):
    """The node must match the pod's nodeSelector and required node affinity."""

    name = "MatchNodeSelector"
    reasons = (NODE_SELECTOR_MISMATCH,)
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The selector and the required terms, compiled."""
        return required_node(cls)

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods with a nodeSelector or required terms."""
        return Scope.NODE if any(required_node(cls)) else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node does not match."""
        return (matches_required_node(pod.cls, at) ^ True) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The expressions that the node does not meet."""
        return unmet_requirements(NODE_SELECTOR_MISMATCH, pod.cls, at, memo)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable] | None:
        """The values of the labels that the pod asks for."""
        return required_keys(pod.cls, at)


class NodeAffinityPriority(ScaledScore):
    """The sum of the weights of the preferred terms a node matches; only matchExpressions count."""

    name = "NodeAffinityPriority"
    highest = HIGHEST_PRIORITY
    formula = "the weights of the preferred terms that match, scaled so that the highest sum is 10"

    def watched(self, cls: PodClass) -> Watched:
        """Preferences of the pod, and of the profile."""
        return Watched.NOTHING

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 for a pod without preferences."""
        return None if _label_preferences(pod.cls) else Everywhere(0)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum of weights. A term that cannot be compiled fails the attempt, once per node."""
        total = at.full(0)
        for weight, selector in _label_preferences(pod.cls):
            if isinstance(selector, str):
                raise AttemptError(*[selector] * len(at))
            total = total + at.where(selects(at, selector), weight, 0)
        return total

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The weights of the terms that the node matches."""
        for index, (weight, selector) in enumerate(_label_preferences(pod.cls)):
            if not isinstance(selector, str) and as_int(selects(at, selector)):
                yield ScoreNumber(f"preferred term {index} ({selector})", weight)


LabelPreferences = tuple[tuple[int, Selector | str], ...]


@once_per_form
def _label_preferences(cls: PodClass) -> LabelPreferences:
    """Weight and selector of each preference; an error text where there is no selector."""
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    compiled: list[tuple[int, Selector | str]] = []
    for term in (affinity.preferred if affinity else None) or ():
        if term.weight == 0:
            continue
        try:
            compiled.append(
                (term.weight, from_node_requirements(term.preference.match_expressions))
            )
        except SelectorError as error:
            compiled.append((term.weight, str(error)))
    return tuple(compiled)


MATCH_NODE_SELECTOR: Final = PredicateDeclaration(
    "MatchNodeSelector",
    "the node matches the pod's nodeSelector and required node affinity",
    plain(MatchNodeSelector),
    aliases=("PodMatchNodeSelector",),
)

NODE_AFFINITY_PRIORITY: Final = PriorityDeclaration(
    "NodeAffinityPriority",
    "the pod's preferred node affinity",
    plain(NodeAffinityPriority),
    providers=BOTH_PROVIDERS,
)
