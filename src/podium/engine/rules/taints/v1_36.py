"""v1.36 TaintToleration: taints that forbid scheduling, and those that only discourage it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import BitFilter, Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes.shared import same_everywhere
from podium.engine.rules.taints.shared import has_untolerated, intolerable
from podium.engine.rules.v1_36 import MAX_SCORE, normalized
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

UNTOLERATED = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(BitFilter):
    """Every taint that forbids scheduling must be tolerated."""

    name = "TaintToleration"
    reasons = (UNTOLERATED,)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Some taint is not tolerated."""
        return at.fact(at.view.facts.taints, lambda taints: int(has_untolerated(pod.cls, taints)))


class TaintTolerationScore(ScoreRule):
    """Prefers nodes with few soft taints that the pod does not tolerate."""

    name = "TaintToleration"
    normalizes = True

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """The highest score if no node has such a taint."""
        column = view.facts.taints
        same = same_everywhere(pod.cls, column, lambda t: intolerable(pod.cls, t), "soft taints")
        return Everywhere(MAX_SCORE) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """How many there are."""
        return at.fact(at.view.facts.taints, lambda taints: intolerable(pod.cls, taints))

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The fewer the better."""
        return normalized(at, raw, reverse=True)
