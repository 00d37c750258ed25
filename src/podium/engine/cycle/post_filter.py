"""Post-filters: what is tried when no node fits, one after the other until one helps or fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy as np

    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


@dataclass(slots=True)
class FailedSearch:
    """A pod for which no node was found, and what is known of it."""

    pod: Incoming
    view: View
    profile: Profile
    #: The predicates that take part in this attempt.
    active: tuple[Predicate, ...]
    #: Rows on which the pod may fit once pods are evicted, in node order.
    potential: np.ndarray
    #: Names of the plugins whose pre-filter saw the pod.
    prepared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a post-filter achieved."""

    #: `Success`, `UnschedulableAndUnresolvable` and `Error` end the stage; after `Unschedulable`
    #: the next post-filter runs. Empty in v1.13, where the stage ends and reports no status.
    code: str
    reason: str = ""
    preemption: Preemption | None = None


class PostFilter(Protocol):
    """A step that runs when no node fits the pod."""

    @property
    def name(self) -> str:
        """The name by which it is configured."""

    @property
    def evicts_pods(self) -> bool:
        """Whether it may evict pods of lower priority."""

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Try to help the pod; questions to extenders are yielded and their replies sent back."""


def run_post_filters(failed: FailedSearch, decision: Decision) -> Generator[Any, Any, None]:
    """Run the post-filters of the profile in order and record the outcome in the decision."""
    reasons = []
    for plugin in failed.profile.post_filters:
        outcome = yield from plugin.run(failed)
        if outcome.preemption is not None:
            decision.preemption = outcome.preemption
        decision.post_code = outcome.code
        if outcome.code != "Unschedulable":
            decision.post_message = "" if outcome.code == "Success" else outcome.reason
            return
        reasons.append(outcome.reason)
        decision.post_message = ", ".join(reasons)
