"""v1.13 rules on taints: PodToleratesNodeTaints and TaintTolerationPriority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.declaration import PredicateDeclaration, PriorityDeclaration, plain
from podium.engine.framework.rule import BitFilter, Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes.shared import zero_for_all_values
from podium.engine.rules.taints.shared import (
    NO_SCHEDULE_EFFECTS,
    count_untolerated_preferences,
    has_untolerated,
)
from podium.engine.rules.v1_13 import BOTH_PROVIDERS, MAX_SCORE, normalized
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

UNTOLERATED_TAINTS = Reason("node(s) had taints that the pod didn't tolerate", curable=False)


class PodToleratesNodeTaints(BitFilter):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "PodToleratesNodeTaints"
    reasons = (UNTOLERATED_TAINTS,)
    effects = NO_SCHEDULE_EFFECTS

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a taint is not tolerated."""
        return at.fact(
            at.view.nodes.facts.taints,
            lambda taints: int(has_untolerated(pod.cls, taints, self.effects)),
        )


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """The pod must tolerate every NoExecute taint of the node."""

    name = "PodToleratesNodeNoExecuteTaints"
    effects = frozenset({"NoExecute"})


class TaintTolerationPriority(ScoreRule):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintTolerationPriority"
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


POD_TOLERATES_NODE_TAINTS: Final = PredicateDeclaration(
    "PodToleratesNodeTaints",
    "the pod tolerates the node's NoSchedule and NoExecute taints",
    plain(PodToleratesNodeTaints),
    provided=True,
    mandatory="TaintNodesByCondition",
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
