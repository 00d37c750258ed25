"""InterPodAffinity: required and preferred affinity between pods, in both directions.

Matching pods are counted per topology domain. A term may select namespaces by label: the terms of
the incoming pod are resolved to names beforehand, and upstream then also matches the selector
against a namespace without labels, so that a selector which only excludes matches all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from podium.engine.framework.causes import Cause
from podium.engine.framework.choices import WakeUps
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    arguments_record,
)
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    BatchTrials,
    Everywhere,
    Refused,
    all_rows,
)
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, Rows
from podium.engine.rules.plugins import MAX_SCORE, WAKE_UPS, counted_by, range_errors
from podium.engine.rules.pod_affinity.shared import (
    EXISTING_ANTI_AFFINITY,
    OWN_AFFINITY,
    OWN_ANTI_AFFINITY,
    PodAffinityFilter,
    WeightedTermsScore,
    anti_affinity_of_placed_pods,
    have_own_domains,
    selects_any_pod,
    term_tally,
)
from podium.engine.state.affinity_terms import (
    PREFERRED_AFFINITY,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
    declared_terms,
    terms_fault,
)
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.tallies import PodTerm
from podium.engine.state.verdicts import FITS, Reason
from podium.objects.go_types import BOOL, INT32
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinity
from podium.objects.selectors.selectors import Selector, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import CarriedTerm, Tally
    from podium.engine.state.view import View


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """How terms of placed pods count in the scores of others."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def _check(found: InterPodAffinityArgs, path: str, _: FeatureGates) -> Errors:
    yield from range_errors(found.hard_pod_affinity_weight, path, "hardPodAffinityWeight")


INTER_POD_AFFINITY_ARGUMENTS: Final = Arguments(
    arguments_record(
        InterPodAffinityArgs,
        hard_pod_affinity_weight=INT32,
        ignore_preferred_terms_of_existing_pods=BOOL,
    ),
    _check,
)


class OwnTerms:
    """The pod's terms, with the namespaces they select."""

    __slots__ = ("affinity", "anti_affinity", "preferences")

    def __init__(self, cls: PodClass, view: View, *, keeps_selector: bool) -> None:
        self.affinity: tuple[PodTerm, ...] = ()
        self.anti_affinity: tuple[PodTerm, ...] = ()
        #: Positive and negative weights with their terms; affinity comes first.
        self.preferences: tuple[tuple[int, PodTerm], ...] = ()
        for kind, weighted in declared_terms(cls).items():
            found = [
                (weight, _with_namespaces(term, view, keeps_selector=keeps_selector))
                for weight, term in weighted
            ]
            if kind == REQUIRED_AFFINITY:
                self.affinity = tuple(term for _, term in found)
            elif kind == REQUIRED_ANTI_AFFINITY:
                self.anti_affinity = tuple(term for _, term in found)
            else:
                sign = 1 if kind == PREFERRED_AFFINITY else -1
                self.preferences += tuple((sign * weight, term) for weight, term in found)


_OWN_TERMS: KeptPerClass[OwnTerms] = KeptPerClass()


def own_terms(cls: PodClass, view: View, *, keeps_selector: bool = True) -> OwnTerms:
    """The pod's terms, compiled once and again when namespaces change.

    *keeps_selector*: the selector of namespaces stays in force beside those that it selects, as in
    v1.34 to v1.36. One that the empty label set matches then matches every namespace.
    """
    state = (view.catalog.namespaces.version, keeps_selector)
    return _OWN_TERMS.of(cls, state, lambda: OwnTerms(cls, view, keeps_selector=keeps_selector))


def _with_namespaces(made: PodTerm, view: View, *, keeps_selector: bool) -> PodTerm:
    """A term of an incoming pod, with the names of the namespaces that it selects by label."""
    selector = made.namespace_selector
    if selector is None or selector.nothing or selector.empty:
        return made
    selected = {n.name for n in view.catalog.namespaces if selector.matches(n.labels)}
    return PodTerm(
        made.namespaces | selected,
        made.selector,
        made.topology_key,
        made.error,
        selector if keeps_selector else None,
    )


class InterPodAffinity(PodAffinityFilter):
    """The pod's affinity is met; its anti-affinity and that of placed pods is not broken."""

    kinds = ("Namespace",)
    name = "InterPodAffinity"

    def __init__(self, *, keeps_namespace_selector: bool = True) -> None:
        self.keeps_namespace_selector = keeps_namespace_selector
        self._activities: KeptPerClass[Activity] = KeptPerClass()

    def may_refuse(self, cls: PodClass) -> bool:
        """A term of the pod that cannot be compiled refuses it."""
        return cls.has_pod_affinity and bool(terms_fault(cls))

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """A term that cannot be compiled refuses the pod."""
        fault = terms_fault(pod.cls)
        return Refused(self.name, f"parsing pod: {fault}") if fault else None

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped if the pod requires nothing and no anti-affinity of placed pods matches it.

        Idle while its anti-affinity and that of placed pods is about no pod. If every node is a
        domain of its own under all topology keys, only pods on the row count.
        """
        placed = view.terms_selecting(pod.cls.labels)
        if not placed and pod.cls.spec.affinity is None:
            return Activity.SKIPPED
        own = self.own_terms(pod, view)
        if not (own.affinity or own.anti_affinity):
            for carried in placed:
                required = carried.kind == REQUIRED_ANTI_AFFINITY and carried.tally.carriers
                if required and carried.tally.total(carried.term.topology_key):
                    break
            else:
                return Activity.SKIPPED
        elif not own.affinity and not self._counts_any(own.anti_affinity, placed, view):
            return Activity.IDLE
        now = (
            view.journal.epoch,
            len(view.pods.carried),
            view.journal.node_changes,
            view.catalog.namespaces.version,
        )
        return self._activities.of(pod.cls, now, lambda: self._find_activity(pod.cls, own, view))

    def _find_activity(self, cls: PodClass, own: OwnTerms, view: View) -> Activity:
        placed = (carried.term for carried in anti_affinity_of_placed_pods(cls, view))
        near = not own.affinity and have_own_domains((*own.anti_affinity, *placed), view)
        return Activity.OWN_ROW if near else Activity.ACTIVE

    def _counts_any(
        self, anti_affinity: tuple[PodTerm, ...], placed: list[CarriedTerm], view: View
    ) -> bool:
        """Whether a pod is in the way of the pod's anti-affinity, or the pod in that of others."""
        for term in anti_affinity:
            if selects_any_pod(view, term):
                return True
        for carried in placed:
            if carried.kind == REQUIRED_ANTI_AFFINITY and carried.tally.carriers:
                return True
        return False

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: only counts are read."""
        return all_rows(at)

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The domains that hold matching pods, for each term."""
        domains = self.domains_in_use(pod, view)
        return None if domains is None else (view.catalog.namespaces.version, domains)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The first that applies: the pod's affinity, its anti-affinity, that of placed pods."""
        own = self.own_terms(pod, at.view)
        codes = at.full(FITS)
        for carried in anti_affinity_of_placed_pods(pod.cls, at.view):
            if at.may_count(carried.tally):
                near = at.domain(carried.tally, carried.term.topology_key) > 0
                codes = at.where(near, self._code(at.view, EXISTING_ANTI_AFFINITY), codes)
        for term in own.anti_affinity:
            near = at.domain(term_tally(at.view, (term,)), term.topology_key) > 0
            codes = at.where(near, self._code(at.view, OWN_ANTI_AFFINITY), codes)
        if own.affinity:
            unmet = self.meets_affinity(pod, own.affinity, at) ^ True
            codes = at.where(unmet, self._code(at.view, OWN_AFFINITY), codes)
        return codes

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The pods that are in the way, and the terms that no pod meets, with their domains."""
        yield from self.own_causes(pod, at, memo)
        yield from self.causes_of_placed_pods(pod, at, memo)

    def own_terms(self, pod: Incoming, view: View) -> OwnTerms:
        """The terms, with the namespaces they select."""
        return own_terms(pod.cls, view, keeps_selector=self.keeps_namespace_selector)

    def _code(self, view: View, reason: Reason) -> int:
        return view.verdicts.of(self.name, (reason,))

    def meets_affinity(self, pod: Incoming, terms: tuple[PodTerm, ...], at: Rows[K]) -> Flags[K]:
        """Only rows that have all topology keys, also for the first pod."""
        placed = at.flags(True)  # noqa: FBT003 - a column of True
        for term in terms:
            placed = placed & at.has_label(term.topology_key)
        return placed & super().meets_affinity(pod, terms, at)


class InterPodAffinityScore(WeightedTermsScore):
    """The score of v1.34 and later, which may ignore what placed pods prefer."""

    kinds = ("Namespace",)
    name = "InterPodAffinity"
    most = MAX_SCORE
    formula = "the weights of terms times matching pods in the node's domains, scaled to 0 to 100"

    def __init__(
        self,
        hard_weight: int = 1,
        *,
        ignore_preferred_of_existing: bool = False,
        keeps_namespace_selector: bool = True,
    ) -> None:
        super().__init__(hard_weight)
        self.ignore_preferred_of_existing = ignore_preferred_of_existing
        self.keeps_namespace_selector = keeps_namespace_selector

    def pre_score(self, pod: Incoming, view: View) -> str:
        """The error of a term that cannot be compiled, unless no term can count."""
        if not pod.cls.has_pod_affinity:
            return ""
        affinity, anti = pod.cls.affinity()
        likes = any(part is not None and part.preferred for part in (affinity, anti))
        fault = "" if self.ignore_preferred_of_existing and not likes else terms_fault(pod.cls)
        return f"failed to parse pod: {fault}" if fault else ""

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped if no term, of the pod or of placed pods, counts."""
        return None if self.weights(pod, view) else SKIPPED

    def of_few(self, pod: Incoming, groups: RowGroups, count: int) -> list[int]:
        """The same scores, scaled."""
        at = groups.rows
        sums = [0] * len(at)
        for weight, tally, key in self.weights(pod, at.view):
            counts = tally.by_domain(key)
            ids = at.label_id_list(key)
            sums = [total + weight * counts.item(i) for total, i in zip(sums, ids, strict=True)]
        lowest = min(sums)
        span = float(max(sums) - lowest)
        if not span:
            return [0] * len(sums)
        return [int(float(MAX_SCORE) * ((each - lowest) / span)) for each in sums]

    def weights(self, pod: Incoming, view: View) -> list[tuple[int, Tally, str]]:
        """None for a pod that neither has terms nor is selected by any."""
        if pod.cls.spec.affinity is None and not view.terms_selecting(pod.cls.labels):
            return []
        return super().weights(pod, view)

    def own_preferences(self, pod: Incoming, view: View) -> tuple[tuple[int, PodTerm], ...]:
        """The pod's preferred terms, with the namespaces they select."""
        return own_terms(pod.cls, view, keeps_selector=self.keeps_namespace_selector).preferences

    def weigh(self, pod: Incoming, view: View) -> Iterator[tuple[int, Tally, str]]:
        """Terms of the pod, and then those of placed pods, that select pods somewhere."""
        own, factors = self.own_preferences(pod, view), self.factors
        if self.ignore_preferred_of_existing and not own:
            return
        for weight, term in own:
            tally = term_tally(view, (term,))
            if tally.carriers and tally.total(term.topology_key):
                yield weight, tally, term.topology_key
        for carried in view.terms_selecting(pod.cls.labels):
            if carried.kind in factors and carried.tally.carriers:
                key = carried.term.topology_key
                if carried.tally.total(key):
                    yield carried.weight * factors[carried.kind], carried.tally, key


def _pod_affinity(_: InterPodAffinityArgs, context: PluginContext) -> InterPodAffinity:
    return InterPodAffinity(keeps_namespace_selector=context.choices.keeps_namespace_selector)


def _pod_affinity_score(
    found: InterPodAffinityArgs, context: PluginContext
) -> InterPodAffinityScore:
    return InterPodAffinityScore(
        found.hard_pod_affinity_weight,
        ignore_preferred_of_existing=found.ignore_preferred_terms_of_existing_pods,
        keeps_namespace_selector=context.choices.keeps_namespace_selector,
    )


class _Term(msgspec.Struct, frozen=True):
    """A required term, ready to match. Namespaces are not looked up: a selector sees no labels."""

    key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, pod: Pod) -> bool:
        if pod.namespace not in self.namespaces and not self.namespace_selector.matches({}):
            return False
        return self.selector.matches(pod.labels)


def _terms(owner: Pod, affinity: PodAffinity | None) -> list[_Term]:
    """Compile the required terms of *owner*; raises `SelectorError` if one is invalid."""
    compiled = []
    for term in (affinity and affinity.required) or ():
        names = frozenset(term.namespaces or ())
        if not names and term.namespace_selector is None:
            names = frozenset({owner.namespace})
        namespace_selector = from_label_selector(term.namespace_selector)
        selector = from_label_selector(term.label_selector)
        compiled.append(_Term(term.topology_key, names, namespace_selector, selector))
    return compiled


def _affinity(pod: Pod) -> list[_Term]:
    return _terms(pod, pod.spec.affinity.pod_affinity if pod.spec.affinity else None)


def _anti_affinity(pod: Pod) -> list[_Term]:
    return _terms(pod, pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None)


def _matches_all(terms: Sequence[_Term], pod: Pod) -> bool:
    """Whether one pod satisfies every term; without terms no pod does."""
    return bool(terms) and all(term.matches(pod) for term in terms)


def _matches_any(terms: Sequence[_Term], pod: Pod) -> bool:
    """Whether a pod satisfies some term."""
    return any(term.matches(pod) for term in terms)


def affine_pod_changed(
    waiting: Pod, old: Pod | None, new: Pod | None, wake_ups: WakeUps = WAKE_UPS
) -> bool:
    """A pod that affinity wants came or began to match; one that anti-affinity forbids left."""
    if old and new and new.uid == waiting.uid:
        return wake_ups.own_labels_and_foreign_anti_affinity
    counts = counted_by(wake_ups, old, new)
    if any(pod and not counts(pod) for pod in (old, new)):
        return False
    wanted, shunned = _affinity(waiting), _anti_affinity(waiting)
    shuns = _matches_any if wake_ups.any_anti_affinity else _matches_all
    if old and new:
        begins = not _matches_all(wanted, old) and _matches_all(wanted, new)
        return begins or (shuns(shunned, old) and not shuns(shunned, new))
    if new:
        return _matches_all(wanted, new)
    if old:
        foreign = wake_ups.own_labels_and_foreign_anti_affinity
        return shuns(shunned, old) or (foreign and shuns(_anti_affinity(old), waiting))
    return False


def affine_node_changed(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came or moved to another topology domain that the pod's terms speak of."""
    wanted, shunned = _affinity(waiting), _anti_affinity(waiting)
    if old is None:
        return bool(shunned) or any(term.key in new.labels for term in wanted)
    moved = {term.key for term in (*wanted, *shunned)}
    moved = {key for key in moved if old.labels.get(key) != new.labels.get(key)}
    joined = any(term.key in moved and term.key in new.labels for term in wanted)
    return joined or any(term.key in moved and term.key in old.labels for term in shunned)


def _affinity_events(context: EventContext) -> Events:
    changed = partial(affine_pod_changed, wake_ups=context.wake_ups)
    return {
        "Pod Add": changed,
        "Pod Delete": changed,
        "Pod UpdatePodLabel": changed,
        "Node Add": affine_node_changed,
        "Node UpdateNodeLabel": affine_node_changed,
    }


INTER_POD_AFFINITY: Final = PluginDeclaration(
    "InterPodAffinity",
    "preFilter filter preScore score",
    "pods near to or far from other pods",
    filter=_pod_affinity,
    score=_pod_affinity_score,
    arguments=INTER_POD_AFFINITY_ARGUMENTS,
    weight=2,
    pre_filter_error='error reading "PreFilterInterPodAffinity" from cycleState: not found',
    pre_score_error='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    events=_affinity_events,
)
