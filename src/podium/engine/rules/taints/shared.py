"""Which taints a pod does not tolerate, and the rules of both generations that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import Cause, ScoreNumber, UntoleratedTaint
from podium.engine.framework.rule import (
    BitFilter,
    Everywhere,
    Watched,
)
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes.shared import zero_for_all_values
from podium.engine.rules.scaled_score import ScaledScore
from podium.engine.state.pod_class import encoded, once_per_form
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.node import Taint

NO_SCHEDULE_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def has_untolerated(
    cls: PodClass, taints: tuple[Taint, ...], effects: frozenset[str] = NO_SCHEDULE_EFFECTS
) -> bool:
    """Whether some taint with one of the effects is not tolerated."""
    tolerations = cls.spec.tolerations
    return any(t.effect in effects and not tolerated(tolerations, t) for t in taints)


def count_untolerated_preferences(cls: PodClass, taints: tuple[Taint, ...]) -> int:
    """The number of PreferNoSchedule taints that the pod does not tolerate."""
    kept = [t for t in cls.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    return sum(t.effect == "PreferNoSchedule" and not tolerated(kept, t) for t in taints)


@once_per_form
def tolerations_key(cls: PodClass) -> bytes:
    """Equal for pods with equal tolerations."""
    return encoded(cls.spec.tolerations)


class UntoleratedTaints(BitFilter):
    """The pod must tolerate every taint of the node with one of the effects."""

    effects = NO_SCHEDULE_EFFECTS
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The tolerations."""
        return tolerations_key(cls)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a taint is not tolerated."""
        return at.fact(
            at.view.nodes.facts.taints,
            lambda taints: int(has_untolerated(pod.cls, taints, self.effects)),
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The taints that are not tolerated."""
        taints = at.view.nodes.facts.taints.on(at.row)
        found = memo.get((self.name, taints))
        if found is None:
            found = memo[self.name, taints] = [
                UntoleratedTaint(self.reasons[0].text, taint.key, taint.value or "", taint.effect)
                for taint in taints
                if has_untolerated(pod.cls, (taint,), self.effects)
            ]
        yield from found

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:  # noqa: ARG002
        """The taints of the node."""
        ids: list[Hashable] = at.ids(at.view.nodes.facts.taints).tolist()
        return ids


class UntoleratedPreferences(ScaledScore):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    reverse = True
    formula = "fewer PreferNoSchedule taints that the pod does not tolerate are better"

    def numbers(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,  # noqa: ARG002
    ) -> Iterator[ScoreNumber]:
        """The taints that count."""
        for taint in at.view.nodes.facts.taints.on(at.row):
            if count_untolerated_preferences(pod.cls, (taint,)):
                value = f"={taint.value}" if taint.value else ""
                yield ScoreNumber(f"taint {taint.key}{value}", 1)

    def watched(self, cls: PodClass) -> Watched:  # noqa: ARG002
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
