"""v1.36 InterPodAffinity: required and preferred affinity between pods, in both directions.

Matching pods are counted per topology domain. A term may select namespaces by label: the terms of
the incoming pod are resolved to names beforehand, and upstream then also matches the selector
against a namespace without labels, so that a selector which only excludes matches all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.causes import Cause, ScoreNumber
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    BatchTrials,
    Everywhere,
    FilterRule,
    Refused,
    Scope,
    ScoreRule,
    Watched,
    all_rows,
)
from podium.engine.rows.node_match import label_keys
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, Rows, as_int
from podium.engine.rules.pod_affinity.shared import (
    blocking_pods,
    counting_state,
    covers_all,
    domain_state,
    have_own_domains,
    missing_pods,
    selects_any_pod,
    term_tally,
    watched_by,
    weighted_domains,
)
from podium.engine.rules.pod_affinity.v1_36_arguments import (
    INTER_POD_AFFINITY_ARGUMENTS,
    InterPodAffinityArgs,
)
from podium.engine.rules.pod_affinity.v1_36_wakeups import affine_node_changed, affine_pod_changed
from podium.engine.rules.v1_36 import MAX_SCORE
from podium.engine.state.affinity_terms import (
    PREFERRED_AFFINITY,
    PREFERRED_ANTI_AFFINITY,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
    declared_terms,
    terms_fault,
)
from podium.engine.state.tallies import PodTerm
from podium.engine.state.verdicts import FITS, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import CarriedTerm, Tally
    from podium.engine.state.view import View

OWN_AFFINITY = Reason("node(s) didn't match pod affinity rules", curable=False)
OWN_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


class OwnTerms:
    """The pod's terms, with the namespaces they select."""

    __slots__ = ("affinity", "anti_affinity", "preferences")

    def __init__(self, cls: PodClass, view: View) -> None:
        self.affinity: tuple[PodTerm, ...] = ()
        self.anti_affinity: tuple[PodTerm, ...] = ()
        #: Positive and negative weights with their terms; affinity comes first.
        self.preferences: tuple[tuple[int, PodTerm], ...] = ()
        for kind, weighted in declared_terms(cls).items():
            found = [(weight, _with_namespaces(term, view)) for weight, term in weighted]
            if kind == REQUIRED_AFFINITY:
                self.affinity = tuple(term for _, term in found)
            elif kind == REQUIRED_ANTI_AFFINITY:
                self.anti_affinity = tuple(term for _, term in found)
            else:
                sign = 1 if kind == PREFERRED_AFFINITY else -1
                self.preferences += tuple((sign * weight, term) for weight, term in found)


def own_terms(cls: PodClass, view: View) -> OwnTerms:
    """The pod's terms, compiled once and again when namespaces change."""
    version = view.catalog.namespaces.version
    known = cls.memo.get("own terms")
    if known is None or known[0] != version:
        known = cls.memo["own terms"] = (version, OwnTerms(cls, view))
    return known[1]


def _with_namespaces(made: PodTerm, view: View) -> PodTerm:
    """A term of an incoming pod, with the names of the namespaces that it selects by label."""
    selector = made.namespace_selector
    if selector is None or selector.nothing or selector.empty:
        return made
    selected = {n.name for n in view.catalog.namespaces if selector.matches(n.labels)}
    return PodTerm(
        made.namespaces | selected, made.selector, made.topology_key, made.error, selector
    )


class InterPodAffinity(FilterRule):
    """The pod's affinity is met; its anti-affinity and that of placed pods is not broken."""

    kinds = ("Namespace",)
    name = "InterPodAffinity"

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """The cluster: pods on other nodes count."""
        return Scope.CLUSTER

    def may_refuse(self, cls: PodClass) -> bool:
        """A term of the pod that cannot be compiled refuses it."""
        return bool(terms_fault(cls))

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:  # noqa: ARG002
        """A term that cannot be compiled refuses the pod."""
        fault = terms_fault(pod.cls)
        return Refused(self.name, f"parsing pod: {fault}") if fault else None

    def watched(self, cls: PodClass) -> Watched:
        """Terms of placed pods, and the pods that terms of the pod select."""
        return watched_by(cls)

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped if the pod requires nothing and no anti-affinity of placed pods matches it.

        Idle while its anti-affinity and that of placed pods is about no pod. If every node is a
        domain of its own under all topology keys, only pods on the row count.
        """
        placed = view.terms_selecting(pod.cls.labels)
        if not placed and pod.cls.spec.affinity is None:
            return Activity.SKIPPED
        own = own_terms(pod.cls, view)
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
        known = pod.cls.memo.get("affinity activity")
        if known is None or known[0] != now:
            terms = (
                *own.anti_affinity,
                *(c.term for c in _anti_affinity_of_placed_pods(pod.cls, view)),
            )
            near = not own.affinity and have_own_domains(terms, view)
            activity = Activity.OWN_ROW if near else Activity.ACTIVE
            known = pod.cls.memo["affinity activity"] = (now, activity)
        found: Activity = known[1]
        return found

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

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
        """On every row: only counts are read."""
        return all_rows(at)

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The domains that hold matching pods, for each term."""
        own = own_terms(pod.cls, view)
        domains = domain_state(
            view,
            [(term_tally(view, own.affinity), term.topology_key) for term in own.affinity]
            + [(term_tally(view, (term,)), term.topology_key) for term in own.anti_affinity]
            + [
                (c.tally, c.term.topology_key) for c in _anti_affinity_of_placed_pods(pod.cls, view)
            ],
        )
        return None if domains is None else (view.catalog.namespaces.version, domains)

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys of the terms of the pod, and of those of placed pods that match it."""
        own = own_terms(pod.cls, view)
        minding = (each.term for each in _anti_affinity_of_placed_pods(pod.cls, view))
        terms = (*own.affinity, *own.anti_affinity, *minding)
        return tuple({term.topology_key: None for term in terms})

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The first that applies: the pod's affinity, its anti-affinity, that of placed pods."""
        own = own_terms(pod.cls, at.view)
        codes = at.full(FITS)
        for carried in _anti_affinity_of_placed_pods(pod.cls, at.view):
            if at.may_count(carried.tally):
                near = at.domain(carried.tally, carried.term.topology_key) > 0
                codes = at.where(near, self._code(at.view, EXISTING_ANTI_AFFINITY), codes)
        for term in own.anti_affinity:
            near = at.domain(term_tally(at.view, (term,)), term.topology_key) > 0
            codes = at.where(near, self._code(at.view, OWN_ANTI_AFFINITY), codes)
        if own.affinity:
            unmet = self._meets_affinity(pod, own.affinity, at) ^ True
            codes = at.where(unmet, self._code(at.view, OWN_AFFINITY), codes)
        return codes

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The pods that are in the way, and the terms that no pod meets, with their domains."""
        own = own_terms(pod.cls, at.view)
        if own.affinity and not as_int(self._meets_affinity(pod, own.affinity, at)):
            yield from missing_pods(OWN_AFFINITY, own.affinity, at, memo)
        for term in own.anti_affinity:
            tally = term_tally(at.view, (term,))
            yield from blocking_pods(OWN_ANTI_AFFINITY, term, tally, at, memo, carried=False)
        for carried in _anti_affinity_of_placed_pods(pod.cls, at.view):
            yield from blocking_pods(
                EXISTING_ANTI_AFFINITY, carried.term, carried.tally, at, memo, carried=True
            )

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """The domains of the row."""
        own = own_terms(pod.cls, at.view)
        carried = [each.term for each in _anti_affinity_of_placed_pods(pod.cls, at.view)]
        terms = (*own.affinity, *own.anti_affinity, *carried)
        return label_keys(dict.fromkeys(term.topology_key for term in terms), at)

    def _code(self, view: View, reason: Reason) -> int:
        return view.verdicts.of(self.name, (reason,))

    def _meets_affinity(self, pod: Incoming, terms: tuple[PodTerm, ...], at: Rows[K]) -> Flags[K]:
        tally = term_tally(at.view, terms)
        placed, met = at.flags(True), at.flags(True)  # noqa: FBT003 - columns of True
        for term in terms:
            placed = placed & at.has_label(term.topology_key)
            met = met & (at.domain(tally, term.topology_key) > 0)
        # The first pod of a group that wants to be together must be able to start somewhere.
        first = at.flags(covers_all(terms, pod.cls.labels))
        for term in terms:
            first = first & (at.total(tally, term.topology_key) == 0)
        return placed & (met | first)


def _anti_affinity_of_placed_pods(cls: PodClass, view: View) -> Iterator[CarriedTerm]:
    """Required anti-affinity terms of placed pods that match this pod."""
    for carried in view.terms_selecting(cls.labels):
        if carried.kind == REQUIRED_ANTI_AFFINITY:
            yield carried


class InterPodAffinityScore(ScoreRule):
    """Prefers topology domains by preferred terms: those of the pod and those of placed pods.

    Required affinity of placed pods to the pod counts with `hard_weight`.
    """

    kinds = ("Namespace",)
    name = "InterPodAffinity"
    always = Scope.CLUSTER
    normalizes = True
    formula = "the weights of terms times matching pods in the node's domains, scaled to 0 to 100"

    def __init__(self, hard_weight: int = 1, *, ignore_preferred_of_existing: bool = False) -> None:
        self.hard_weight = hard_weight
        self.ignore_preferred_of_existing = ignore_preferred_of_existing

    def pre_score(self, pod: Incoming, view: View) -> str:  # noqa: ARG002
        """The error of a term that cannot be compiled, unless no term can count."""
        affinity, anti = pod.cls.affinity()
        likes = any(part is not None and part.preferred for part in (affinity, anti))
        fault = "" if self.ignore_preferred_of_existing and not likes else terms_fault(pod.cls)
        return f"failed to parse pod: {fault}" if fault else ""

    def watched(self, cls: PodClass) -> Watched:
        """Terms of placed pods, and the pods that terms of the pod select."""
        return watched_by(cls)

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped if no term, of the pod or of placed pods, counts."""
        return None if self._weights(pod, view) else SKIPPED

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys of the terms that count."""
        return tuple(sorted({key for _, _, key in self._weights(pod, view)}))

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum of the weights of matching pods in the row's domains."""
        by_key: dict[str, list[tuple[int, Tally]]] = {}
        for weight, tally, key in self._weights(pod, at.view):
            by_key.setdefault(key, []).append((weight, tally))
        sums = [at.weighted_domain(weighted, key) for key, weighted in by_key.items()]
        return sum(sums[1:], sums[0]) if sums else at.full(0)

    def of_few(self, pod: Incoming, groups: RowGroups, count: int) -> list[int]:  # noqa: ARG002
        """The same scores, scaled."""
        at = groups.rows
        sums = [0] * len(at)
        for weight, tally, key in self._weights(pod, at.view):
            counts = tally.by_domain(key)
            ids = at.label_id_list(key)
            sums = [total + weight * counts.item(i) for total, i in zip(sums, ids, strict=True)]
        lowest = min(sums)
        span = float(max(sums) - lowest)
        if not span:
            return [0] * len(sums)
        return [int(float(MAX_SCORE) * ((each - lowest) / span)) for each in sums]

    def numbers(self, pod: Incoming, at: OneRow) -> Iterator[ScoreNumber]:
        """For each term that counts, its weight times the matching pods in the node's domain."""
        yield from weighted_domains(
            own_terms(pod.cls, at.view).preferences, self._weights(pod, at.view), pod, at
        )

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Scaled between the lowest and the highest sum, in floating point."""
        lowest = int(raw.min())
        span = int(raw.max()) - lowest
        if not span:
            return np.zeros(len(raw), np.int64)
        if span > len(at):
            return (float(MAX_SCORE) * ((raw - lowest) / float(span))).astype(np.int64)
        # Few distinct sums: scale each once.
        table = (float(MAX_SCORE) * (np.arange(span + 1) / float(span))).astype(np.int64)
        found: np.ndarray = table.take(raw - lowest)
        return found

    def _weights(self, pod: Incoming, view: View) -> list[tuple[int, Tally, str]]:
        """Weights of the tallies that count; kept until other tallies do."""
        if pod.cls.spec.affinity is None and not view.terms_selecting(pod.cls.labels):
            return []
        now = counting_state(view)
        key = (self.name, self.hard_weight, self.ignore_preferred_of_existing)
        known = pod.cls.memo.get(key)
        if known is None or known[0] != now:
            known = pod.cls.memo[key] = (now, list(self._weigh(pod, view)))
        found: list[tuple[int, Tally, str]] = known[1]
        return found

    def _weigh(self, pod: Incoming, view: View) -> Iterator[tuple[int, Tally, str]]:
        own = own_terms(pod.cls, view).preferences
        if self.ignore_preferred_of_existing and not own:
            return
        for weight, term in own:
            tally = term_tally(view, (term,))
            if tally.carriers and tally.total(term.topology_key):
                yield weight, tally, term.topology_key
        factors = {PREFERRED_AFFINITY: 1, PREFERRED_ANTI_AFFINITY: -1}
        if self.hard_weight > 0:
            factors[REQUIRED_AFFINITY] = self.hard_weight
        for carried in view.terms_selecting(pod.cls.labels):
            if carried.kind in factors and carried.tally.carriers:
                key = carried.term.topology_key
                if carried.tally.total(key):
                    yield carried.weight * factors[carried.kind], carried.tally, key


def _pod_affinity_score(found: InterPodAffinityArgs) -> InterPodAffinityScore:
    return InterPodAffinityScore(
        found.hard_pod_affinity_weight,
        ignore_preferred_of_existing=found.ignore_preferred_terms_of_existing_pods,
    )


INTER_POD_AFFINITY: Final = PluginDeclaration(
    "InterPodAffinity",
    "preFilter filter preScore score",
    "pods near to or far from other pods",
    filter=plain(InterPodAffinity),
    score=_pod_affinity_score,
    arguments=INTER_POD_AFFINITY_ARGUMENTS,
    weight=2,
    pre_filter_error='error reading "PreFilterInterPodAffinity" from cycleState: not found',
    pre_score_error='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    events={
        "Pod Add": affine_pod_changed,
        "Pod Delete": affine_pod_changed,
        "Pod UpdatePodLabel": affine_pod_changed,
        "Node Add": affine_node_changed,
        "Node UpdateNodeLabel": affine_node_changed,
    },
)
