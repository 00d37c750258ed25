"""v1.13 rules on taints: PodToleratesNodeTaints and TaintTolerationPriority."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PredicateDeclaration, PriorityDeclaration, plain
from podium.engine.rules.priorities import BOTH_PROVIDERS, MAX_SCORE
from podium.engine.rules.taints.shared import UntoleratedPreferences, UntoleratedTaints
from podium.engine.state.verdicts import Reason

UNTOLERATED_TAINTS = Reason("node(s) had taints that the pod didn't tolerate", curable=False)


class PodToleratesNodeTaints(UntoleratedTaints):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "PodToleratesNodeTaints"
    reasons = (UNTOLERATED_TAINTS,)


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """The pod must tolerate every NoExecute taint of the node."""

    name = "PodToleratesNodeNoExecuteTaints"
    effects = frozenset({"NoExecute"})


class TaintTolerationPriority(UntoleratedPreferences):
    """The priority on PreferNoSchedule taints."""

    name = "TaintTolerationPriority"
    highest = MAX_SCORE


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
