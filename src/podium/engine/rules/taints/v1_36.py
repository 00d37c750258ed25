"""TaintToleration: hard taints keep pods away, soft ones make nodes less liked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.nodes.v1_13 import PodToleratesNodeTaints
from podium.engine.rules.nodes.v1_13_scores import intolerable, same_everywhere
from podium.engine.rules.plugins import MAX_SCORE, FilterPlugin, ScorePlugin, normalized
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

UNTOLERATED = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(PodToleratesNodeTaints, FilterPlugin):
    """The same rule with other words."""

    name = "TaintToleration"

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (UNTOLERATED,)


class TaintTolerationScore(ScorePlugin):
    """Prefers nodes with few soft taints that the pod does not tolerate."""

    name = "TaintToleration"
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
