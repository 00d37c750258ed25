"""v1.13 affinity and anti-affinity between pods: MatchInterPodAffinity, InterPodAffinityPriority.

With predicate metadata, MatchInterPodAffinity reads counts per topology domain. Upstream has no
metadata when a pod runs on a node that does not exist, or when a selector cannot be compiled; it
then walks all pods. The two ways differ, also upstream: walking requires a single pod to match
all anti-affinity terms.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.causes import (
    MOST_NAMED,
    BlockingPods,
    Cause,
    DomainCount,
    MissingPods,
)
from podium.engine.framework.declaration import PredicateDeclaration, PriorityDeclaration, plain
from podium.engine.framework.rule import (
    Activity,
    AttemptError,
    BatchTrials,
    Everywhere,
    all_rows,
    no_rows,
)
from podium.engine.framework.trace import Prepared
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, OneRow, Rows
from podium.engine.rules.placed_pods import placed_pod
from podium.engine.rules.pod_affinity.shared import (
    EXISTING_ANTI_AFFINITY,
    OWN_AFFINITY,
    OWN_ANTI_AFFINITY,
    PodAffinityFilter,
    WeightedTermsScore,
    anti_affinity_of_placed_pods,
    covers_all,
    have_own_domains,
    term_tally,
    term_text,
)
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.state.affinity_terms import (
    REQUIRED_ANTI_AFFINITY,
    preferred,
    required,
)
from podium.engine.state.pod_class import KeptPerClass, once_per_class
from podium.engine.state.verdicts import FITS, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.tallies import CarriedTerm, LabelSet, PodTerm, Tally
    from podium.engine.state.view import View

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
def own_terms(cls: PodClass) -> CompiledTerms:
    """The required terms of the pods of a class."""
    return CompiledTerms(cls)


class MatchInterPodAffinity(PodAffinityFilter):
    """The pod's affinity is met; its anti-affinity and that of placed pods is not broken."""

    name = "MatchInterPodAffinity"

    def __init__(self) -> None:
        self._near: KeptPerClass[bool] = KeptPerClass()

    def own_terms(self, pod: Incoming, view: View) -> CompiledTerms:
        """The terms of the class."""
        return own_terms(pod.cls)

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
        own = own_terms(cls)
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
        own = own_terms(pod.cls)
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
        terms = own_terms(pod.cls)
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
        own, anti = own_terms(pod.cls).affinity, own_terms(pod.cls).anti_affinity
        labels = row.node_labels
        for other in _all_pods(row):
            node = row.view.nodes.objects[other.row]
            there = {} if node is None else node.labels
            place = (placed_pod(other, row),)
            for term in own_terms(other.cls).anti_affinity:
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
        own, anti = own_terms(pod.cls).affinity, own_terms(pod.cls).anti_affinity
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
            for term in own_terms(other.cls).anti_affinity:
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
    pods, own = view.pods, own_terms(cls)
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
