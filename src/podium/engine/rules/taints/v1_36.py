"""v1.36 TaintToleration: filters by NoSchedule and NoExecute, scores by PreferNoSchedule."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.rules.taints.shared import UntoleratedPreferences, UntoleratedTaints
from podium.engine.rules.taints.v1_36_wakeups import taints_tolerated
from podium.engine.rules.v1_36 import MAX_SCORE
from podium.engine.rules.v1_36_wakeups import is_self
from podium.engine.state.verdicts import Reason

UNTOLERATED_TAINTS = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(UntoleratedTaints):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "TaintToleration"
    reasons = (UNTOLERATED_TAINTS,)


class TaintTolerationScore(UntoleratedPreferences):
    """The score on PreferNoSchedule taints."""

    name = "TaintToleration"
    highest = MAX_SCORE


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
