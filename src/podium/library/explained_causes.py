"""The causes that an explanation shows, added to a decision that was just made.

Causes of rejections are found for all nodes; the numbers behind scores for the nodes with the best
totals, and the reasons for victims on the candidates that cost least, which is what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.library.reasoning.causes import find_causes, find_score_causes
from podium.library.reasoning.preemption_causes import find_preemption_causes
from podium.library.reasoning.trace import find_trace
from podium.render.decision.analysis import ranking, runner_up
from podium.render.decision.sentences import sorted_by_cost

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: For how many nodes scores are explained, and for how many candidates their victims.
_SCORED: Final = 10
_CANDIDATES: Final = 10
#: For how many nodes a trace has the arithmetic of scores.
_TRACED: Final = 3


def add_causes(
    view: View, pod: Pod, profile: Profile, decision: Decision, *, asked: str | None = None
) -> None:
    """Find the causes in the view that the decision was made in; *asked* is explained as well."""
    incoming = view.pods.incoming(pod)
    decision.causes = find_causes(view, incoming, profile, decision)
    if decision.totals is not None:
        names = _best_nodes(decision, _SCORED)
        if asked is not None and asked in decision.feasible and asked not in names:
            names.append(asked)
        decision.score_causes = find_score_causes(view, incoming, profile, decision, names)
    if decision.preemption is not None:
        candidates = decision.preemption.candidates
        cheapest = sorted_by_cost(candidates, decision.preemption.node)[:_CANDIDATES]
        if asked is not None and asked in candidates and asked not in cheapest:
            cheapest.append(asked)
        decision.preemption_causes = find_preemption_causes(
            view, incoming, profile, decision, cheapest, asked=asked
        )


def add_rejection_causes(view: View, pod: Pod, profile: Profile, decision: Decision) -> None:
    """Find the causes of rejections alone, in the view that the decision was made in."""
    decision.causes = find_causes(view, view.pods.incoming(pod), profile, decision)


def add_trace(
    view: View, pod: Pod, profile: Profile, decision: Decision, *, asked: str | None = None
) -> None:
    """Find the steps of the decision in the view that it was made in."""
    scored = _traced_nodes(decision, asked)
    incoming = view.pods.incoming(pod)
    decision.trace = find_trace(view, incoming, profile, decision, scored, asked=asked)


def _traced_nodes(decision: Decision, asked: str | None = None) -> list[str]:
    """The nodes whose scores a trace computes: the one asked about, or the best ones."""
    if decision.totals is None:
        return []
    if asked is not None:
        return [asked] if asked in decision.feasible else []
    return _best_nodes(decision, _TRACED)


def _best_nodes(decision: Decision, most: int) -> list[str]:
    """The best nodes, and the one whose lower total is compared with that of the chosen one."""
    second = runner_up(decision)
    positions = [*ranking(decision)[:most], *([] if second is None else [second])]
    return [decision.feasible[at] for at in dict.fromkeys(positions)]
