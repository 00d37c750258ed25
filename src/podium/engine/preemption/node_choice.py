"""The node to preempt pods on: extenders may change the candidates, then criteria choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.decision import Preemption
from podium.engine.framework.extenders import ask_victims
from podium.engine.framework.rule import AttemptError
from podium.engine.preemption.criteria import choose

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.criteria import Criterion
    from podium.engine.preemption.victim_policy import VictimPolicy
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def choose_node(
    failed: FailedSearch,
    candidates: Mapping[str, Victims],
    policy: VictimPolicy,
    criteria: Sequence[Criterion],
) -> Generator[Any, Any, Preemption]:
    """The preemption that follows from the candidates.

    It has an error when an extender failed, and no node when no candidate is left.
    """
    pod, view = failed.pod, failed.view
    potential = view.nodes.names_of(failed.potential)
    if failed.extenders:
        try:
            candidates = yield from ask_victims(
                pod, view, failed.extenders, candidates, policy.victims
            )
        except AttemptError as error:
            return Preemption(eligible=True, potential=potential, error=str(error))
    choice = choose(candidates, criteria)
    if choice.node is None:
        return Preemption(eligible=True, potential=potential)
    return Preemption(
        eligible=True,
        potential=potential,
        candidates=candidates,
        node=choice.node,
        tie=choice.tie,
        criterion=choice.criterion,
        cleared=lower_nominations(pod, view, choice.node),
        nomination=choice.node,
    )


def lower_nominations(pod: Incoming, view: View, node: str) -> tuple[tuple[str, str], ...]:
    """Uid and key of the pods of lower priority nominated to a node; they lose the nomination."""
    return tuple(
        (other.uid, other.key)
        for other in view.pods.nominated.get(node, ())
        if other.priority < pod.priority
    )
