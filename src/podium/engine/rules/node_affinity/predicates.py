"""v1.13 nodeSelector and node affinity: MatchNodeSelector, NodeAffinityPriority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, ScoreNumber
from podium.engine.framework.declaration import PredicateDeclaration, PriorityDeclaration, plain
from podium.engine.framework.rule import (
    AttemptError,
    BitFilter,
    Everywhere,
    Scope,
    Watched,
)
from podium.engine.rows.node_match import selects
from podium.engine.rows.rows import Ints, K, ManyRows, Rows, as_int
from podium.engine.rules.node_affinity.shared import (
    matches_required_node,
    required_keys,
    required_node,
    unmet_requirements,
)
from podium.engine.rules.priorities import BOTH_PROVIDERS, MAX_SCORE
from podium.engine.rules.scaled_score import ScaledScore
from podium.engine.state.pod_class import once_per_form
from podium.engine.state.verdicts import Reason
from podium.objects.selectors.selectors import Selector, SelectorError, from_node_requirements

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

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
    highest = MAX_SCORE
    formula = "the weights of the preferred terms that match, scaled so that the highest sum is 10"

    def watched(self, cls: PodClass) -> Watched:  # noqa: ARG002
        """Preferences of the pod, and of the profile."""
        return Watched.NOTHING

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """0 for a pod without preferences."""
        return None if _preferences(pod.cls) else Everywhere(0)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum of weights. A term that cannot be compiled fails the attempt, once per node."""
        total = at.full(0)
        for weight, selector in _preferences(pod.cls):
            if isinstance(selector, str):
                raise AttemptError(*[selector] * len(at))
            total = total + at.where(selects(at, selector), weight, 0)
        return total

    def numbers(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,  # noqa: ARG002
    ) -> Iterator[ScoreNumber]:
        """The weights of the terms that the node matches."""
        for index, (weight, selector) in enumerate(_preferences(pod.cls)):
            if not isinstance(selector, str) and as_int(selects(at, selector)):
                yield ScoreNumber(f"preferred term {index} ({selector})", weight)


Preferences = tuple[tuple[int, Selector | str], ...]


@once_per_form
def _preferences(cls: PodClass) -> Preferences:
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
