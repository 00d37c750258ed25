"""v1.13 rules on taints: PodToleratesNodeTaints, TaintTolerationPriority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.nodes.shared import same_everywhere
from podium.engine.rules.predicates import BitPredicate
from podium.engine.rules.priorities import MAX_SCORE, NodePriority, normalized
from podium.engine.rules.taints.shared import NO_SCHEDULE_EFFECTS, has_untolerated, intolerable
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

TAINTS = Reason("node(s) had taints that the pod didn't tolerate", curable=False)


class PodToleratesNodeTaints(BitPredicate):
    """Every taint that forbids scheduling must be tolerated."""

    name = "PodToleratesNodeTaints"
    effects = NO_SCHEDULE_EFFECTS

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (TAINTS,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some taint is not tolerated."""
        return at.fact(
            at.view.facts.taints, lambda taints: int(has_untolerated(pod.cls, taints, self.effects))
        )


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """Only taints that evict must be tolerated."""

    name = "PodToleratesNodeNoExecuteTaints"
    effects = frozenset({"NoExecute"})


class TaintTolerationPriority(NodePriority):
    """Prefers nodes with few taints of the preferring kind that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    reduces = True

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """No such taint anywhere."""
        column = view.facts.taints
        same = same_everywhere(pod.cls, column, lambda t: intolerable(pod.cls, t), "soft taints")
        return MAX_SCORE if same else None

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """How many there are."""
        return at.fact(at.view.facts.taints, lambda taints: intolerable(pod.cls, taints))

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:  # noqa: ARG002
        """The fewer the better."""
        return normalized(at, raw, reverse=True)
