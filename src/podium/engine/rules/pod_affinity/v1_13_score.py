"""InterPodAffinityPriority: preferred affinity between pods, in both directions.

Pods' own preferences, the preferences of pods already placed and, with a weight of its own, their
required affinity, all counted per topology domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import AttemptError, Scope
from podium.engine.rules.pod_affinity.v1_13_filter import term_tally
from podium.engine.rules.priorities import MAX_SCORE, NodePriority
from podium.engine.state.affinity_terms import (
    PREFERRED_AFFINITY,
    PREFERRED_ANTI_AFFINITY,
    REQUIRED_AFFINITY,
    preferred,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints, PodTerm, Tally
    from podium.engine.state.view import View


class InterPodAffinityPriority(NodePriority):
    """Prefers domains that hold pods it likes, or that like it."""

    name = "InterPodAffinityPriority"
    always = Scope.CLUSTER
    reduces = True

    def __init__(self, hard_weight: int = 1) -> None:
        #: What a placed pod's required affinity to this one is worth.
        self.hard_weight = hard_weight

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """Nobody likes or dislikes anybody."""
        return 0 if not self._weights(pod, view) else None

    def alike(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """Rows of the same domains score alike."""
        return tuple(sorted({key for _, _, key in self._weights(pod, view)}))

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """The sum of weights that reach the row's domains."""
        by_key: dict[str, list[tuple[int, Tally]]] = {}
        for weight, tally, topology_key in self._weights(pod, at.view):
            by_key.setdefault(topology_key, []).append((weight, tally))
        total = at.full(0)
        for key, weighted in by_key.items():
            total = total + at.weighted_domain(weighted, key)
        return total

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:  # noqa: ARG002
        """Scaled between the lowest and the highest, with 0 always in between."""
        highest, lowest = at.highest(raw), -at.highest(-raw)
        span = highest - lowest
        if not span:
            return at.full(0)
        if span > len(at):
            return at.truncate(float(MAX_SCORE) * ((raw - lowest) / float(span)))
        # Few distinct sums: scale each once.
        table = (float(MAX_SCORE) * (np.arange(span + 1) / float(span))).astype(np.int64)
        return table[raw - lowest]

    def _weights(self, pod: Incoming, view: View) -> list[tuple[int, Tally, str]]:
        """What counts now; asked several times per decision, so kept until something changes."""
        now = (view.changes, view.catalog.namespaces.version)
        key = (self.name, self.hard_weight)
        known = pod.cls.memo.get(key)
        if known is None or known[0] != now:
            known = pod.cls.memo[key] = (now, list(self._weigh(pod, view)))
        found: list[tuple[int, Tally, str]] = known[1]
        return found

    def _weigh(self, pod: Incoming, view: View) -> Iterator[tuple[int, Tally, str]]:
        """Weight, pods it stands for and topology of everything that counts."""
        if view.pod_total > sum(len(view.residents[row]) for row in view.ghosts):
            for weight, term in own_preferences(pod.cls):
                if term.error:
                    raise AttemptError(term.error)
                tally = term_tally(view, (term,))
                if tally.carriers and term.topology_key:
                    yield weight, tally, term.topology_key
        for weight, term, tally in self._carried(pod, view):
            if tally.carriers and term.topology_key:
                yield weight, tally, term.topology_key

    def _carried(self, pod: Incoming, view: View) -> Iterator[tuple[int, PodTerm, Tally]]:
        factors = {PREFERRED_AFFINITY: 1, PREFERRED_ANTI_AFFINITY: -1}
        if self.hard_weight > 0:
            factors[REQUIRED_AFFINITY] = self.hard_weight
        for carried in view.invalid_carried:
            # Pods on a row that nobody knows are not looked at.
            if carried.kind in factors and carried.tally.rows[view.known].any():
                raise AttemptError(carried.term.error)
        for carried in pod.cls.labels.terms_meaning(view):
            if carried.kind in factors:
                yield carried.weight * factors[carried.kind], carried.term, carried.tally


def own_preferences(cls: PodClass) -> tuple[tuple[int, PodTerm], ...]:
    """The pod's preferred terms; those of anti-affinity with a negative weight."""
    return cls.once("preferred pods", lambda: _own_preferences(cls))


def _own_preferences(cls: PodClass) -> tuple[tuple[int, PodTerm], ...]:
    affinity, anti_affinity = cls.affinity()
    against = preferred(anti_affinity, cls.namespace)
    return (*preferred(affinity, cls.namespace), *((-weight, term) for weight, term in against))
