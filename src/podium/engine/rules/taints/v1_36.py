"""v1.36 TaintToleration: filters by NoSchedule and NoExecute, scores by PreferNoSchedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import BitFilter, Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes.shared import zero_for_all_values
from podium.engine.rules.taints.shared import count_untolerated_preferences, has_untolerated
from podium.engine.rules.taints.v1_36_wakeups import taints_tolerated
from podium.engine.rules.v1_36 import MAX_SCORE, normalized
from podium.engine.rules.v1_36_wakeups import is_self
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

UNTOLERATED_TAINTS = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(BitFilter):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "TaintToleration"
    reasons = (UNTOLERATED_TAINTS,)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a taint is not tolerated."""
        return at.fact(
            at.view.nodes.facts.taints, lambda taints: int(has_untolerated(pod.cls, taints))
        )


class TaintTolerationScore(ScoreRule):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintToleration"
    normalizes = True

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """The highest score if no node has such a taint."""
        column = view.nodes.facts.taints
        same = zero_for_all_values(
            pod.cls, column, lambda t: count_untolerated_preferences(pod.cls, t), "soft taints"
        )
        return Everywhere(MAX_SCORE) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The number of such taints."""
        return at.fact(
            at.view.nodes.facts.taints,
            lambda taints: count_untolerated_preferences(pod.cls, taints),
        )

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Fewer taints score higher."""
        return normalized(at, raw, reverse=True)


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
