"""v1.36 TaintToleration: taints that forbid scheduling, and those that only discourage it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.nodes.shared import same_everywhere
from podium.engine.rules.plugins import MAX_SCORE, FilterPlugin, ScorePlugin, normalized
from podium.engine.rules.taints.shared import has_untolerated, intolerable
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

UNTOLERATED = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(FilterPlugin):
    """Every taint that forbids scheduling must be tolerated."""

    name = "TaintToleration"

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (UNTOLERATED,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some taint is not tolerated."""
        return at.fact(at.view.facts.taints, lambda taints: int(has_untolerated(pod.cls, taints)))


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
