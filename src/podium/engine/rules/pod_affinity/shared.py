"""Pod affinity terms of both generations: matching pods, counted per topology domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from podium.engine.framework.causes import (
    MOST_NAMED,
    BlockingPods,
    Cause,
    DomainCount,
    MissingPods,
    PodOnNode,
    ScoreNumber,
)
from podium.engine.framework.rule import FilterRule, Scope, ScoreRule, Watched
from podium.engine.framework.trace import Prepared
from podium.engine.rows.node_match import label_keys
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, Rows, Scalar, as_int
from podium.engine.rows.written import written
from podium.engine.rules.placed_pods import placed_pod
from podium.engine.state.affinity_terms import (
    PREFERRED_AFFINITY,
    PREFERRED_ANTI_AFFINITY,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
)
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.selector_index import NOBODY, anchor_of_all
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.tallies import CarriedTerm, LabelSet, PodTerm, Tally
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
