"""Taints and tolerations: the plugin TaintToleration, and the rules on taints of v1.13.

Filters go by NoSchedule and NoExecute, scores by PreferNoSchedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, ScoreNumber, UntoleratedTaint
from podium.engine.framework.declaration import (
    PluginDeclaration,
    PredicateDeclaration,
    PriorityDeclaration,
    plain,
)
from podium.engine.framework.rule import BitFilter, Everywhere, Watched
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes import zero_for_all_values
from podium.engine.rules.plugins import MAX_SCORE, is_self
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.rules.scaled_score import ScaledScore
from podium.engine.state.pod_class import encoded, once_per_form
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, Toleration
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.node import Taint


HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def has_untolerated(tolerations: list[Toleration] | None, taints: Iterable[Taint]) -> bool:
    """Whether some NoSchedule or NoExecute taint is not tolerated."""
    return any(t.effect in HARD_EFFECTS and not tolerated(tolerations, t) for t in taints)


def count_untolerated_preferences(cls: PodClass, taints: tuple[Taint, ...]) -> int:
    """The number of PreferNoSchedule taints that the pod does not tolerate."""
    kept = [t for t in cls.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    return sum(t.effect == "PreferNoSchedule" and not tolerated(kept, t) for t in taints)


@once_per_form
def tolerations_key(cls: PodClass) -> bytes:
    """Equal for pods with equal tolerations."""
    return encoded(cls.spec.tolerations)


class UntoleratedTaints(BitFilter):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The tolerations."""
        return tolerations_key(cls)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a taint is not tolerated."""
        return at.fact(
            at.view.nodes.facts.taints,
            lambda taints: int(has_untolerated(pod.cls.spec.tolerations, taints)),
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The taints that are not tolerated."""
        taints = at.view.nodes.facts.taints.on(at.row)
        found = memo.get((self.name, taints))
        if found is None:
            found = memo[self.name, taints] = [
                UntoleratedTaint(self.reasons[0].text, taint.key, taint.value or "", taint.effect)
                for taint in taints
                if has_untolerated(pod.cls.spec.tolerations, (taint,))
            ]
        yield from found

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """The taints of the node."""
        ids: list[Hashable] = at.ids(at.view.nodes.facts.taints).tolist()
        return ids


class UntoleratedPreferences(ScaledScore):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    reverse = True
    formula = "fewer PreferNoSchedule taints that the pod does not tolerate are better"

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The taints that count."""
        for taint in at.view.nodes.facts.taints.on(at.row):
            if count_untolerated_preferences(pod.cls, (taint,)):
                value = f"={taint.value}" if taint.value else ""
                yield ScoreNumber(f"taint {taint.key}{value}", 1)

    def watched(self, cls: PodClass) -> Watched:
        """Taints of nodes."""
        return Watched.NODES

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """The highest score if no node has such a taint."""
        column = view.nodes.facts.taints
        same = zero_for_all_values(
            pod.cls.form.memo,
            column,
            lambda taints: count_untolerated_preferences(pod.cls, taints),
            UntoleratedPreferences,
        )
        return Everywhere(self.highest) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The number of such taints."""
        return at.fact(
            at.view.nodes.facts.taints,
            lambda taints: count_untolerated_preferences(pod.cls, taints),
        )


UNTOLERATED_TAINTS = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(UntoleratedTaints):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "TaintToleration"
    reasons = (UNTOLERATED_TAINTS,)


class TaintTolerationScore(UntoleratedPreferences):
    """The score on PreferNoSchedule taints."""

    name = "TaintToleration"
    highest = MAX_SCORE


def taints_tolerated(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came without taints that the pod does not tolerate, or lost them."""
    was_shut = old is None or _shut(waiting, old)
    return was_shut and not _shut(waiting, new)


def _shut(pod: Pod, node: Node) -> bool:
    return has_untolerated(pod.spec.tolerations, node.spec.taints or ())


TAINT_TOLERATION: Final = PluginDeclaration(
    "TaintToleration",
    "filter preScore score",
    "taints that the pod tolerates",
    filter=plain(TaintToleration),
    score=plain(TaintTolerationScore),
    weight=3,
    pre_score_error='failed to read "PreScoreTaintToleration" from cycleState: not found',
    events={
        "Node Add": taints_tolerated,
        "Node UpdateNodeTaint": taints_tolerated,
        "Pod UpdatePodToleration": is_self,
    },
)


INTOLERABLE_TAINTS = Reason("node(s) had taints that the pod didn't tolerate", curable=False)


class PodToleratesNodeTaints(UntoleratedTaints):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "PodToleratesNodeTaints"
    reasons = (INTOLERABLE_TAINTS,)


class TaintTolerationPriority(UntoleratedPreferences):
    """The priority on PreferNoSchedule taints."""

    name = "TaintTolerationPriority"
    highest = HIGHEST_PRIORITY


POD_TOLERATES_NODE_TAINTS: Final = PredicateDeclaration(
    "PodToleratesNodeTaints",
    "the pod tolerates the node's NoSchedule and NoExecute taints",
    plain(PodToleratesNodeTaints),
    provided=True,
    mandatory="TaintNodesByCondition",
    aliases=("PodToleratesNodeNoExecuteTaints",),
)

POD_TOLERATES_NODE_NO_EXECUTE_TAINTS: Final = PredicateDeclaration(
    "PodToleratesNodeNoExecuteTaints",
    "no rule of its own; PodToleratesNodeTaints covers NoExecute taints",
    None,
)

TAINT_TOLERATION_PRIORITY: Final = PriorityDeclaration(
    "TaintTolerationPriority",
    "few PreferNoSchedule taints that the pod does not tolerate",
    plain(TaintTolerationPriority),
    providers=BOTH_PROVIDERS,
)
