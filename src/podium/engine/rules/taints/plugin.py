"""TaintToleration: filters by NoSchedule and NoExecute, scores by PreferNoSchedule."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.rules.plugins import MAX_SCORE, is_self
from podium.engine.rules.taints.shared import UntoleratedPreferences, UntoleratedTaints
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.taints import tolerated

UNTOLERATED_TAINTS = Reason("node(s) had untolerated taint(s)", curable=False)


class TaintToleration(UntoleratedTaints):
    """The pod must tolerate every NoSchedule and NoExecute taint of the node."""

    name = "TaintToleration"
    reasons = (UNTOLERATED_TAINTS,)


class TaintTolerationScore(UntoleratedPreferences):
    """The score on PreferNoSchedule taints."""

    name = "TaintToleration"
    highest = MAX_SCORE


_HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def taints_tolerated(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came without taints that the pod does not tolerate, or lost them."""
    was_shut = old is None or _shut(waiting, old)
    return was_shut and not _shut(waiting, new)


def _shut(pod: Pod, node: Node) -> bool:
    hard = (taint for taint in node.spec.taints or () if taint.effect in _HARD_EFFECTS)
    return not all(tolerated(pod.spec.tolerations, taint) for taint in hard)


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
