"""Affinity between pods: the plugin InterPodAffinity, and the rules of v1.13.

Matching pods are counted per topology domain. A term may select namespaces by label: the terms of
the incoming pod are resolved to names beforehand, and upstream then also matches the selector
against a namespace without labels, so that a selector which only excludes matches all of them.

In v1.13 MatchInterPodAffinity reads these counts from predicate metadata. Upstream has none when a
pod runs on a node that does not exist, or when a selector cannot be compiled; it then walks all
pods. The two ways differ, also upstream: walking requires a single pod to match all anti-affinity
terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import numpy as np

from podium.engine.framework.causes import (
    MOST_NAMED,
    BlockingPods,
    Cause,
    DomainCount,
    MissingPods,
    PodOnNode,
    ScoreNumber,
    placed_pod,
)
from podium.engine.framework.choices import WakeUps
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginContext,
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
    BatchTrials,
    Everywhere,
    FilterRule,
    Refused,
    Scope,
    ScoreRule,
    Watched,
    all_rows,
    no_rows,
)
from podium.engine.framework.trace import Prepared
from podium.engine.rows.node_match import label_keys
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, OneRow, Rows, Scalar, as_int
from podium.engine.rows.written import written
from podium.engine.rules.plugins import MAX_SCORE, WAKE_UPS, counted_by, range_errors
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.state.affinity_terms import (
    PREFERRED_AFFINITY,
    PREFERRED_ANTI_AFFINITY,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
    declared_terms,
    preferred,
    required,
    terms_fault,
)
from podium.engine.state.pod_class import KeptPerClass, once_per_class
from podium.engine.state.selector_index import NOBODY, anchor_of_all
from podium.engine.state.tallies import PodTerm
from podium.engine.state.verdicts import FITS, Reason
from podium.objects.go_types import BOOL, INT32
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinity
from podium.objects.selectors.selectors import Selector, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.tallies import CarriedTerm, LabelSet, Tally
    from podium.engine.state.view import View


OWN_AFFINITY = Reason("node(s) didn't match pod affinity rules", curable=False)
OWN_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
#: Up to so many label sets are matched against a term before a tally of its pods is made.
MOST_LABEL_SETS = 8


#: What the metadata of a pod holds: pairs of pods whose anti-affinity selects it, and of its own.
EXISTING_PAIRS = "pairs of placed pods whose anti-affinity selects the pod"
AFFINITY_PAIRS = "pairs of placed pods that the pod's affinity selects"
ANTI_AFFINITY_PAIRS = "pairs of placed pods that the pod's anti-affinity selects"


def watched_by(cls: PodClass) -> Watched:
    """What rules on pod affinity look at: a pod without terms meets those of placed pods only."""
    watched = Watched.TERMS | Watched.NODES
    return watched | Watched.SELECTED_PODS if cls.has_pod_affinity else watched


def counting_state(view: View) -> Hashable:
    """While this stays the same, the same tallies of terms count pods, whatever their numbers."""
    journal = view.journal
    return (
        journal.changes if view.pods.unknown_nodes else -1,
        journal.epoch,
        journal.node_changes,
        view.catalog.namespaces.version,
        view.pods.presence.changes,
    )


def term_tally(view: View, terms: tuple[PodTerm, ...]) -> Tally:
    """A tally of the pods that match all of the terms, by namespace and labels."""
    tallies = view.pods.tallies
    only = terms[0] if len(terms) == 1 else None
    if only is not None and only.known_tally is not None and only.known_tally[0] is tallies:
        return only.known_tally[1]
    key = ("terms", *(term.pods for term in terms))
    tally = view.pods.tally(
        key,
        lambda labels: covers_all(terms, labels),
        lambda: anchor_of_all(term.selector for term in terms) if terms else NOBODY,
    )
    if only is not None:
        only.known_tally = (tallies, tally)
    return tally


def selects_any_pod(view: View, term: PodTerm) -> bool:
    """Whether any placed pod matches a term; no tally is made for one that may not come again."""
    if term.known_tally is None:
        likely = view.pods.label_sets_with(term.anchor)
        if len(likely) <= MOST_LABEL_SETS and not any(
            labels.rows and term.covers(labels.namespace, labels.labels) for labels in likely
        ):
            return False
    return bool(term_tally(view, (term,)).carriers)


def covers_all(terms: tuple[PodTerm, ...], labels: LabelSet) -> bool:
    """Whether pods with these labels match every one of the terms."""
    return bool(terms) and all(term.covers(labels.namespace, labels.labels) for term in terms)


class RequiredTerms(Protocol):
    """The required terms of a pod."""

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]


def anti_affinity_of_placed_pods(cls: PodClass, view: View) -> Iterator[CarriedTerm]:
    """Required anti-affinity terms of placed pods that match this pod."""
    for carried in view.terms_selecting(cls.labels):
        if carried.kind == REQUIRED_ANTI_AFFINITY:
            yield carried


class PodAffinityFilter(FilterRule):
    """The pod's affinity is met; its anti-affinity and that of placed pods is not broken.

    Subclasses compile the terms, and say in which order reasons are reported.
    """

    always = Scope.CLUSTER

    def own_terms(self, pod: Incoming, view: View) -> RequiredTerms:
        """The required terms of the pod."""
        raise NotImplementedError

    def watched(self, cls: PodClass) -> Watched:
        """Terms of placed pods, and the pods that terms of the pod select."""
        return watched_by(cls)

    def domains_in_use(self, pod: Incoming, view: View) -> Hashable:
        """The domains that hold matching pods, for each term; None where every row is a domain."""
        own = self.own_terms(pod, view)
        counted = [(term_tally(view, own.affinity), term.topology_key) for term in own.affinity]
        counted += [(term_tally(view, (term,)), term.topology_key) for term in own.anti_affinity]
        minding = anti_affinity_of_placed_pods(pod.cls, view)
        counted += [(carried.tally, carried.term.topology_key) for carried in minding]
        if any(view.nodes.label_column(key).one_row_each for _, key in counted):
            return None
        return tuple((key, (tally.by_domain(key) > 0).tobytes()) for tally, key in counted)

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys of the terms of the pod, and of those of placed pods that match it."""
        own = self.own_terms(pod, view)
        minding = (each.term for each in anti_affinity_of_placed_pods(pod.cls, view))
        terms = (*own.affinity, *own.anti_affinity, *minding)
        return tuple({term.topology_key: None for term in terms})

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The topology pairs with the pods that count."""
        own = self.own_terms(pod, view)
        for carried in anti_affinity_of_placed_pods(pod.cls, view):
            key = carried.term.topology_key
            yield prepared_pairs(self.name, EXISTING_PAIRS, carried.tally, key, view)
        for key in dict.fromkeys(term.topology_key for term in own.affinity):
            tally = term_tally(view, own.affinity)
            yield prepared_pairs(self.name, AFFINITY_PAIRS, tally, key, view)
        for term in own.anti_affinity:
            tally = term_tally(view, (term,))
            yield prepared_pairs(self.name, ANTI_AFFINITY_PAIRS, tally, term.topology_key, view)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable] | None:
        """The domains of the row."""
        return label_keys(self.domain_keys(pod, at.view), at)

    def own_causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The affinity terms that no pod meets, and the pods in the way of anti-affinity."""
        own = self.own_terms(pod, at.view)
        if own.affinity and not as_int(self.meets_affinity(pod, own.affinity, at)):
            yield from missing_pods(OWN_AFFINITY, own.affinity, at, memo)
        for term in own.anti_affinity:
            tally = term_tally(at.view, (term,))
            yield from blocking_pods(OWN_ANTI_AFFINITY, term, tally, at, memo, carried=False)

    def causes_of_placed_pods(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The pods whose anti-affinity keeps the pod away."""
        for carried in anti_affinity_of_placed_pods(pod.cls, at.view):
            yield from blocking_pods(
                EXISTING_ANTI_AFFINITY, carried.term, carried.tally, at, memo, carried=True
            )

    def meets_affinity(self, pod: Incoming, terms: tuple[PodTerm, ...], at: Rows[K]) -> Flags[K]:
        """The rows in whose domains a pod matches all terms, or all rows for the first pod."""
        tally = term_tally(at.view, terms)
        met = at.flags(True)  # noqa: FBT003 - a column of True
        # The first pod of a group that wants to be together must be able to start somewhere.
        first = at.flags(covers_all(terms, pod.cls.labels))
        for term in terms:
            met = met & (at.domain(tally, term.topology_key) > 0)
            first = first & (at.total(tally, term.topology_key) == 0)
        return met | first


def blocking_pods(
    reason: Reason, term: PodTerm, tally: Tally, at: OneRow, memo: Memo, *, carried: bool
) -> Iterator[Cause]:
    """The pods of the node's domain that a required anti-affinity term keeps the pod apart from."""
    key = term.topology_key
    count, value = as_int(at.domain(tally, key)), at.node_labels.get(key)
    if count <= 0 or value is None:
        return
    known = memo.get((tally, key, value))
    if known is None:
        known = memo[tally, key, value] = list(
            _pods_in_domain(tally, key, value, at, carried=carried)
        )
    if at.modified:
        here = at.residents() if carried else at.labelled_pods()
        counted = [p for p in here if _is_counted(p, tally, carried=carried)]
        known = [pod for pod in known if pod.node != at.name]
        known += [placed_pod(pod, at) for pod in counted]
    pods = tuple(known[:MOST_NAMED])
    yield BlockingPods(reason.text, term_text(term), key, value, count, pods, carried)


def _pods_in_domain(
    tally: Tally, key: str, value: str, at: OneRow, *, carried: bool
) -> Iterator[PodOnNode]:
    view = at.view
    column = view.nodes.label_column(key)
    rows = np.flatnonzero((tally.rows > 0) & (column.ids == column.index[value]))
    found = 0
    for row in rows.tolist():
        for resident in view.pods.residents[row]:
            if _is_counted(resident, tally, carried=carried):
                yield placed_pod(resident, at)
                found += 1
        if found >= MOST_NAMED:
            return


def _is_counted(pod: Resident, tally: Tally, *, carried: bool) -> bool:
    if carried:
        return any(each.tally is tally for each in pod.cls.carried)
    return tally in pod.labels.tallies


def missing_pods(
    reason: Reason, terms: tuple[PodTerm, ...], at: OneRow, memo: Memo
) -> Iterator[Cause]:
    """The required affinity terms in whose domain of the node no matching pod is."""
    tally = term_tally(at.view, terms)
    text = " and ".join(term_text(term) for term in terms)
    for key in dict.fromkeys(term.topology_key for term in terms):
        if at.domain(tally, key) > 0:
            continue
        known = memo.get(("missing", tally, key))
        if known is None:
            known = memo["missing", tally, key] = _largest_domains(tally, key, at)
        value = at.node_labels.get(key)
        yield MissingPods(reason.text, text, key, value, tally.carriers, known)


def _largest_domains(tally: Tally, key: str, at: OneRow) -> tuple[DomainCount, ...]:
    sums, values = tally.by_domain(key), at.view.nodes.label_column(key).values
    order = sorted(np.flatnonzero(sums).tolist(), key=lambda domain: -int(sums[domain]))
    return tuple(DomainCount(values[d] or "", int(sums[d])) for d in order[:MOST_NAMED])


def weighted_domains(
    own: Iterable[tuple[int, PodTerm]],
    weights: Iterable[tuple[int, Tally, str]],
    pod: Incoming,
    at: OneRow,
) -> Iterator[ScoreNumber]:
    """For each term that counts, its weight times the matching pods in the node's domain.

    *weights* are those that a score adds up; the terms they belong to are looked up here, because
    only explanations name them.
    """
    view = at.view
    names = {
        (term_tally(view, (term,)), term.topology_key): (
            f"the pod's {'anti-affinity' if weight < 0 else 'affinity'} to {term_text(term)}"
        )
        for weight, term in own
        if not term.error
    }
    for carried in view.terms_selecting(pod.cls.labels):
        text = f"{carried.kind} of placed pods to {term_text(carried.term)}"
        names.setdefault((carried.tally, carried.term.topology_key), text)
    for weight, tally, key in weights:
        count = as_int(at.domain(tally, key))
        if count:
            where = f"{key}={at.node_labels.get(key, '')}"
            what = f"{names[tally, key]} (weight {weight}, {count} in {where})"
            yield ScoreNumber(what, weight * count)


class WeightedTermsScore(ScoreRule):
    """Prefers topology domains by preferred terms: those of the pod and those of placed pods.

    Required affinity of placed pods to the pod counts with `hard_weight`.
    """

    always = Scope.CLUSTER
    normalizes = True
    #: The final score of the highest sum.
    most: int

    def __init__(self, hard_weight: int = 1) -> None:
        #: What a placed pod's required affinity to this one is worth.
        self.hard_weight = hard_weight
        #: The sign or weight of each kind of terms of placed pods that counts.
        self.factors = {PREFERRED_AFFINITY: 1, PREFERRED_ANTI_AFFINITY: -1}
        if hard_weight > 0:
            self.factors[REQUIRED_AFFINITY] = hard_weight
        self._kept_weights: KeptPerClass[list[tuple[int, Tally, str]]] = KeptPerClass()

    def own_preferences(self, pod: Incoming, view: View) -> tuple[tuple[int, PodTerm], ...]:
        """The pod's preferred terms; those of anti-affinity with a negative weight."""
        raise NotImplementedError

    def weigh(self, pod: Incoming, view: View) -> Iterator[tuple[int, Tally, str]]:
        """Weight, tally and topology key of each term that counts."""
        raise NotImplementedError

    def bounds(self, raw: np.ndarray) -> tuple[int, int]:
        """The lowest and the highest of the sums."""
        return int(raw.min()), int(raw.max())

    def weights(self, pod: Incoming, view: View) -> list[tuple[int, Tally, str]]:
        """What `weigh` finds, kept until other tallies count."""
        now = counting_state(view)
        return self._kept_weights.of(pod.cls, now, lambda: list(self.weigh(pod, view)))

    def watched(self, cls: PodClass) -> Watched:
        """Terms of placed pods, and the pods that terms of the pod select."""
        return watched_by(cls)

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys of the terms that count."""
        return tuple(sorted({key for _, _, key in self.weights(pod, view)}))

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum of the weights of matching pods in the row's domains."""
        by_key: dict[str, list[tuple[int, Tally]]] = {}
        for weight, tally, key in self.weights(pod, at.view):
            by_key.setdefault(key, []).append((weight, tally))
        sums = [at.weighted_domain(weighted, key) for key, weighted in by_key.items()]
        return sum(sums[1:], sums[0]) if sums else at.full(0)

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """For each term that counts, its weight times the matching pods in the node's domain."""
        own = self.own_preferences(pod, at.view)
        yield from weighted_domains(own, self.weights(pod, at.view), pod, at)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """Scaled between the lowest and the highest sum, in floating point."""
        lowest, highest = self.bounds(raw)
        span = highest - lowest
        if not span:
            return np.zeros(len(raw), np.int64)
        sums = raw if span > len(at) else np.arange(lowest, highest + 1)
        scaled: Any = scaled_between(at, sums, lowest, highest, self.most)  # type: ignore[arg-type]
        if span > len(at):
            return np.asarray(scaled)
        # Few distinct sums: each was scaled once.
        found: np.ndarray = scaled.take(raw - lowest)
        return found

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The same for one row."""
        lowest, highest = self.bounds(raw)
        if lowest == highest:
            return at.full(0)
        return scaled_between(at, own, written(lowest), written(highest), self.most)


def prepared_pairs(rule: str, name: str, tally: Tally, key: str, view: View) -> Prepared:
    """The topology pairs (key and value) in which a tally counts pods."""
    sums, values = tally.by_domain(key), view.nodes.label_column(key).values
    pairs = [f"{key}={values[d] or ''} ({int(sums[d])})" for d in np.flatnonzero(sums).tolist()]
    more = f" and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    return Prepared(rule, name, f"{', '.join(pairs[:MOST_NAMED])}{more}" or "none")


def scaled_between(at: Rows[K], sums: Ints[K], lowest: int, highest: int, best: int) -> Ints[K]:
    """Sums scaled from 0, for the *lowest*, to *best*, for the *highest*; in doubles."""
    return at.truncate(float(best) * ((sums - lowest) / (highest - lowest)))


def term_text(term: PodTerm) -> str:
    """Which pods a term selects: by labels, and in which namespaces."""
    if term.selector.nothing:
        return "no pods"
    labels = str(term.selector) or "all pods"
    where = f" in {', '.join(sorted(term.namespaces))}" if term.namespaces else ""
    if term.namespace_selector is not None and not term.namespace_selector.nothing:
        chosen = str(term.namespace_selector) or "all namespaces"
        where += f"{' and' if where else ' in'} namespaces with {chosen}"
    return labels + where


def have_own_domains(terms: Iterable[PodTerm], view: View) -> bool:
    """Whether every row is a topology domain of its own for these terms, as with host names."""
    return all(view.nodes.label_column(term.topology_key).one_row_each for term in terms)


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


POD_AFFINITY = Reason("node(s) didn't match pod affinity/anti-affinity")
EMPTY_TOPOLOGY_KEY = (
    "empty topologyKey is not allowed except for PreferredDuringScheduling pod anti-affinity"
)


class CompiledTerms:
    """The required terms of a pod, and whether some of them cannot be compiled."""

    __slots__ = ("affinity", "affinity_fault", "anti_affinity", "anti_affinity_fault")

    def __init__(self, cls: PodClass) -> None:
        affinity, anti_affinity = cls.affinity()
        self.affinity = required(affinity, cls.namespace)
        self.anti_affinity = required(anti_affinity, cls.namespace)
        self.affinity_fault = any(term.error for term in self.affinity)
        self.anti_affinity_fault = any(term.error for term in self.anti_affinity)


@once_per_class
def compiled_terms(cls: PodClass) -> CompiledTerms:
    """The required terms of the pods of a class."""
    return CompiledTerms(cls)


class MatchInterPodAffinity(PodAffinityFilter):
    """The pod's affinity is met; its anti-affinity and that of placed pods is not broken."""

    name = "MatchInterPodAffinity"

    def __init__(self) -> None:
        self._near: KeptPerClass[bool] = KeptPerClass()

    def own_terms(self, pod: Incoming, view: View) -> CompiledTerms:
        """The terms of the class."""
        return compiled_terms(pod.cls)

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Idle if the pod requires nothing and no required anti-affinity of placed pods matches it.

        If every node is a domain of its own under all topology keys, only pods on the row count.
        """
        placed, pods = view.terms_selecting(pod.cls.labels), view.pods
        if not (placed or pods.unknown_nodes or pods.invalid_carried or pod.cls.spec.affinity):
            return Activity.IDLE  # most pods; nothing that follows could find anything
        if self._is_about_no_pod(pod.cls, placed, view):
            return Activity.IDLE
        now = (
            view.journal.epoch,
            len(view.pods.carried),
            view.journal.node_changes,
            bool(view.pods.total),
        )
        near = self._near.of(pod.cls, now, lambda: self._looks_at_own_row(pod, view))
        return Activity.OWN_ROW if near else Activity.ACTIVE

    def _is_about_no_pod(self, cls: PodClass, placed: list[CarriedTerm], view: View) -> bool:
        """Whether the pod has anti-affinity at most, and neither that nor that of others counts."""
        own = compiled_terms(cls)
        if own.affinity or metadata_unavailable(cls, view):
            return False
        for term in own.anti_affinity:
            if term_tally(view, (term,)).carriers:
                return False
        for carried in placed:
            if carried.kind == REQUIRED_ANTI_AFFINITY and carried.tally.carriers:
                return False
        return True

    def _looks_at_own_row(self, pod: Incoming, view: View) -> bool:
        own = compiled_terms(pod.cls)
        if view.pods.unknown_nodes or view.pods.invalid_carried or own.affinity:
            return False
        if own.anti_affinity_fault:
            return False
        carried = (each.term for each in anti_affinity_of_placed_pods(pod.cls, view))
        return have_own_domains((*own.anti_affinity, *carried), view)

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row with metadata; without it all pods are walked, one row at a time."""
        return no_rows(at) if metadata_unavailable(pod.cls, at.view) else all_rows(at)

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The domains that hold matching pods, for each term."""
        return None if metadata_unavailable(pod.cls, view) else self.domains_in_use(pod, view)

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """None without metadata: then all pods are walked for each row."""
        return () if metadata_unavailable(pod.cls, view) else super().domain_keys(pod, view)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The generic reason, followed by the one that applies."""
        if metadata_unavailable(pod.cls, at.view):
            return at.map(lambda row: self._reject_by_walking(pod, row))
        codes = at.full(FITS)
        terms = compiled_terms(pod.cls)
        own, anti = terms.affinity, terms.anti_affinity
        if anti:
            broken = self._breaks_anti_affinity(anti, at)
            codes = at.where(broken, self._code(at.view, OWN_ANTI_AFFINITY), codes)
        if own:
            unmet = self.meets_affinity(pod, own, at) ^ True
            codes = at.where(unmet, self._code(at.view, OWN_AFFINITY), codes)
        for carried in at.view.terms_selecting(pod.cls.labels):
            if carried.kind == REQUIRED_ANTI_AFFINITY and at.may_count(carried.tally):
                near = at.domain(carried.tally, carried.term.topology_key) > 0
                codes = at.where(near, self._code(at.view, EXISTING_ANTI_AFFINITY), codes)
        return codes

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The predicate metadata: topology pairs with the pods that count."""
        if metadata_unavailable(pod.cls, view):
            yield Prepared(self.name, "metadata", "none: all pods are walked for each node")
            return
        yield from super().prepared(pod, view)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The pods that are in the way, and the terms that no pod meets, with their domains."""
        if metadata_unavailable(pod.cls, at.view):
            yield from self._causes_by_walking(pod, at)
            return
        yield from self.causes_of_placed_pods(pod, at, memo)
        yield from self.own_causes(pod, at, memo)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable] | None:
        """The domains of the row, if the facts about other pods are there."""
        missing = metadata_unavailable(pod.cls, at.view)
        return None if missing else super().cause_keys(pod, at)

    def _causes_by_walking(self, pod: Incoming, row: OneRow) -> Iterator[Cause]:
        own, anti = compiled_terms(pod.cls).affinity, compiled_terms(pod.cls).anti_affinity
        labels = row.node_labels
        for other in _all_pods(row):
            node = row.view.nodes.objects[other.row]
            there = {} if node is None else node.labels
            place = (placed_pod(other, row),)
            for term in compiled_terms(other.cls).anti_affinity:
                key, value = term.topology_key, there.get(term.topology_key)
                covered = not term.error and term.covers(pod.cls.namespace, pod.cls.labels.labels)
                if covered and value is not None and labels.get(key) == value:
                    text = EXISTING_ANTI_AFFINITY.text
                    yield BlockingPods(text, term_text(term), key, value, 1, place, carried=True)
            if anti and _matches_or_fails(anti, other, row):
                key, text = anti[0].topology_key, " and ".join(map(term_text, anti))
                yield BlockingPods(OWN_ANTI_AFFINITY.text, text, key, there.get(key, ""), 1, place)
        matching = [other for other in _all_pods(row) if covers_all(own, other.labels)]
        text = " and ".join(map(term_text, own))
        for key in dict.fromkeys(term.topology_key for term in own):
            domains = _domains_of(matching, key, row.view)
            value = labels.get(key)
            if value is None or value not in domains:
                found = tuple(DomainCount(*each) for each in domains.most_common(MOST_NAMED))
                yield MissingPods(OWN_AFFINITY.text, text, key, value, len(matching), found)

    def _code(self, view: View, reason: Reason) -> int:
        return view.verdicts.of(self.name, (POD_AFFINITY, reason))

    def _breaks_anti_affinity(self, terms: tuple[PodTerm, ...], at: Rows[K]) -> Flags[K]:
        broken = at.flags(False)  # noqa: FBT003 - a column of False
        for term in terms:
            broken = broken | (at.domain(term_tally(at.view, (term,)), term.topology_key) > 0)
        if not at.modified:
            return broken
        # A pod that preemption put back counts for all terms as soon as it meets any of them.
        keys = at.flags(False)  # noqa: FBT003 - a column of False
        for term in terms:
            keys = keys | at.has_label(term.topology_key)
        return broken | (keys & (at.readded(terms, partial(_covered_by_any, terms)) > 0))

    # The slow rule ------------------------------------------------------------------------------

    def _reject_by_walking(self, pod: Incoming, row: OneRow) -> int:
        try:
            reason = self._reason_by_walking(pod, row)
        except _NodeError as error:
            row.fail(str(error))
            return FITS
        return FITS if reason is None else self._code(row.view, reason)

    def _reason_by_walking(self, pod: Incoming, row: OneRow) -> Reason | None:
        pods = list(_all_pods(row))
        if self._breaks_existing(pod, row, pods):
            return EXISTING_ANTI_AFFINITY
        own, anti = compiled_terms(pod.cls).affinity, compiled_terms(pod.cls).anti_affinity
        prefix = (
            f"Cannot schedule pod {pod.key} onto node {row.name}, because of PodAffinity, err: "
        )
        met = meant = False
        for other in pods:
            if own and not met:
                here, like = _matches_in_topology(own, other, row, prefix)
                met, meant = met or here, meant or like
            if anti and _matches_or_fails(anti, other, row):
                return OWN_ANTI_AFFINITY
        if own and not met and (meant or not _selects_itself(own, pod.cls)):
            return OWN_AFFINITY
        return None

    def _breaks_existing(self, pod: Incoming, row: OneRow, pods: list[Resident]) -> bool:
        pairs = set()
        for other in pods:
            node = row.view.nodes.objects[other.row]
            if node is None:
                continue
            for term in compiled_terms(other.cls).anti_affinity:
                if term.error:
                    raise _NodeError(
                        f"Failed to get all terms that pod {pod.key} matches, err: {term.error}"
                    )
                value = node.labels.get(term.topology_key)
                if value is not None and term.covers(pod.cls.namespace, pod.cls.labels.labels):
                    pairs.add((term.topology_key, value))
        return not pairs.isdisjoint(row.node_labels.items())


def _domains_of(pods: Iterable[Resident], key: str, view: View) -> Counter[str]:
    """How many of these pods are in each domain of a key; those on unknown nodes are in none."""
    nodes = (view.nodes.objects[pod.row] for pod in pods)
    return Counter(node.labels[key] for node in nodes if node is not None and key in node.labels)


def _covered_by_any(terms: tuple[PodTerm, ...], labels: LabelSet) -> bool:
    return any(term.covers(labels.namespace, labels.labels) for term in terms)


class _NodeError(Exception):
    """The node cannot be judged; the attempt fails with this text."""


def metadata_unavailable(cls: PodClass, view: View) -> bool:
    """Whether upstream has no predicate metadata for the pod, so that it walks all pods."""
    pods, own = view.pods, compiled_terms(cls)
    if pods.unknown_nodes or own.affinity_fault:
        return True
    if own.anti_affinity_fault and pods.total:
        return True
    return bool(pods.invalid_carried) and any(
        carried.kind == REQUIRED_ANTI_AFFINITY and carried.tally.carriers
        for carried in pods.invalid_carried
    )


def _all_pods(row: OneRow) -> Iterator[Resident]:
    """All pods of the cluster in node order, without those that a trial removed from this row.

    Pods on nodes that do not exist come last, by the name of their node.
    """
    view = row.view
    here = {resident.key for resident in row.residents()}
    for number in (*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()):
        for resident in view.pods.residents[number]:
            if number != row.row or resident.key in here:
                yield resident


def _matches_in_topology(
    terms: tuple[PodTerm, ...], other: Resident, row: OneRow, prefix: str
) -> tuple[bool, bool]:
    """Whether all terms match the pod within their topology, and whether they match it at all."""
    invalid = next((term.error for term in terms if term.error), "")
    if invalid:
        raise _NodeError(prefix + invalid)
    if not covers_all(terms, other.labels):
        return False, False
    node = row.view.nodes.objects[other.row]
    if node is None:
        raise _NodeError(f'{prefix}node "{row.view.nodes.names[other.row]}" not found')
    for term in terms:
        if not term.topology_key:
            raise _NodeError(prefix + EMPTY_TOPOLOGY_KEY)
        value = node.labels.get(term.topology_key)
        if value is None or value != row.node_labels.get(term.topology_key):
            return False, True
    return True, True


def _matches_or_fails(terms: tuple[PodTerm, ...], other: Resident, row: OneRow) -> bool:
    try:
        return _matches_in_topology(terms, other, row, "")[0]
    except _NodeError:
        return True


def _selects_itself(terms: tuple[PodTerm, ...], cls: PodClass) -> bool:
    return not any(term.error for term in terms) and covers_all(terms, cls.labels)


class InterPodAffinityPriority(WeightedTermsScore):
    """The score of v1.13, where 0 always is one of the sums."""

    name = "InterPodAffinityPriority"
    most = HIGHEST_PRIORITY
    formula = "the weights of terms times matching pods in the node's domains, scaled to 0 to 10"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 if no term, of the pod or of placed pods, counts."""
        return None if self.weights(pod, view) else Everywhere(0)

    def bounds(self, raw: np.ndarray) -> tuple[int, int]:
        """The lowest and the highest of the sums and 0."""
        return int(raw.min(initial=0)), int(raw.max(initial=0))

    def own_preferences(self, pod: Incoming, view: View) -> tuple[tuple[int, PodTerm], ...]:
        """The pod's preferred terms."""
        return own_preferences(pod.cls)

    def weigh(self, pod: Incoming, view: View) -> Iterator[tuple[int, Tally, str]]:
        """Terms of the pod, where any pod is on a node, and then those of placed pods."""
        own, pods = own_preferences(pod.cls), view.pods
        if own and pods.total > sum(len(pods.residents[row]) for row in pods.unknown_nodes):
            for weight, term in own:
                if term.error:
                    raise AttemptError(term.error)
                tally = term_tally(view, (term,))
                if tally.carriers and term.topology_key:
                    yield weight, tally, term.topology_key
        for weight, term, tally in self._weighted_terms_of_placed_pods(pod, view):
            if tally.carriers and term.topology_key:
                yield weight, tally, term.topology_key

    def _weighted_terms_of_placed_pods(
        self, pod: Incoming, view: View
    ) -> Iterator[tuple[int, PodTerm, Tally]]:
        factors = self.factors
        for carried in view.pods.invalid_carried:
            # Pods on a node that does not exist are not looked at.
            if carried.kind in factors and carried.tally.rows[view.nodes.known].any():
                raise AttemptError(carried.term.error)
        for carried in view.terms_selecting(pod.cls.labels):
            if carried.kind in factors:
                yield carried.weight * factors[carried.kind], carried.term, carried.tally


@once_per_class
def own_preferences(cls: PodClass) -> tuple[tuple[int, PodTerm], ...]:
    """The pod's preferred terms; those of anti-affinity with a negative weight."""
    affinity, anti_affinity = cls.affinity()
    against = preferred(anti_affinity, cls.namespace)
    return (*preferred(affinity, cls.namespace), *((-weight, term) for weight, term in against))


MATCH_INTER_POD_AFFINITY: Final = PredicateDeclaration(
    "MatchInterPodAffinity",
    "required affinity and anti-affinity between pods holds on the node",
    plain(MatchInterPodAffinity),
    provided=True,
    aliases=("InterPodAffinityMatches",),
)

INTER_POD_AFFINITY_PRIORITY: Final = PriorityDeclaration(
    "InterPodAffinityPriority",
    "preferred affinity and anti-affinity between pods, in both directions",
    lambda args: InterPodAffinityPriority(args.hard_pod_affinity_weight),
    providers=BOTH_PROVIDERS,
    kind="function",
)
